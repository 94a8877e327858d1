import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { keyFromId } from '../../../src/session/session-key.ts';
import type { PendingCall } from '../../../src/store/event-log.ts';
import type { ClusterStore } from '../../../src/store/store.ts';
import { reportFaultsTo } from '../../../src/util/boundary.ts';
import { handshake, note, request, response } from '../../session/session-fixture.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { acceptsJson, createFakeReply } from '../../support/fake-reply.ts';
import { cluster, createCluster } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

/** The calls that the next owner of a session would have to answer. The session is taken over for that. */
async function pendingAfter({ sessions }: ClusterStore, id: string): Promise<readonly PendingCall[]> {
  const key = keyFromId(id);
  const record = await sessions.find(key);
  if (record === undefined) throw new Error('the store does not know the session');
  const taken = await sessions.takeOver(key, record, 'next');
  if (taken.outcome !== 'taken') throw new Error(`the session is ${taken.outcome}`);
  return taken.log.pending;
}

const list = (id: string | number) => request(id, 'tools/list', {});

/** An instance that is cut off for so long is taken for dead, and has not sent its clients away yet. */
const deadMs = cluster.leaseMs - 200;

describe('a session that is used through an instance that does not hold it', () => {
  it('answers a request with JSON, by one message each way', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const before = [a.line.posted, b.line.posted];
    const reply = b.post(id, request('r'));
    await pass();
    expect([reply.given, a.fake.backend.sent.items.at(-1)]).toEqual([undefined, request('r')]);
    a.fake.backend.says(response('r', { n: 1 }));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'json', json: response('r', { n: 1 }) });
    expect([a.line.posted, b.line.posted].map((posted, index) => posted - (before[index] ?? 0))).toEqual([1, 1]);
    expect(b.fake.opened).toEqual([]);
  });

  it('[C-10] answers a request that its owner cannot decode, and later ones as usual', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    b.line.rewrite((content) => Buffer.from(content.toString('latin1').replace('"v":2', '"v":9'), 'latin1'));
    const newer = b.post(id, request('r'));
    await pass();
    expect(newer.given).toMatchObject({ kind: 'fault', reason: 'instances_differ', id: 'r' });
    b.line.rewrite((content) => content);
    const next = b.post(id, request('s'));
    await pass();
    a.fake.backend.says(response('s', { n: 1 }));
    await pass();
    expect(next.given).toMatchObject({ kind: 'json', json: response('s', { n: 1 }) });
  });

  it('[C-10] answers a request whose body reaches its owner as no valid message', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reported: unknown[] = [];
    onTestFinished(reportFaultsTo((seam) => void reported.push(seam)));
    b.line.rewrite((content) => Buffer.from(content.toString('latin1').replace('tools/call', 'tools"call'), 'latin1'));
    const reply = b.post(id, request('r'));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'fault', reason: 'internal', id: 'r' });
    expect(reported).toEqual(['cluster']);
  });

  it('[C-10] reports an unknown outcome if the owner’s answer cannot be decoded', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    a.line.rewrite((content) => Buffer.from(content.toString('latin1').replace('"v":2', '"v":9'), 'latin1'));
    const reply = b.post(id, request('r'));
    await pass();
    a.fake.backend.says(response('r', { n: 1 }));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'fault', reason: 'outcome_unknown', id: 'r' });
  });

  it('answers a request with a stream, whose events have the ids of its log', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = b.post(id, request('r'));
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    expect(reply.sink.messages).toEqual([note(1)]);
    a.fake.backend.says(note(2), response('r'));
    await pass();
    expect([reply.sink.messages, reply.sink.state]).toEqual([[note(1), note(2), response('r')], 'ended']);
    const here = a.get(id, reply.sink.ids[0]);
    await pass();
    expect(here.sink.ids.slice(1)).toEqual(reply.sink.ids.slice(1));
  });

  it('answers a client that accepts only JSON, while the server’s other messages go to the GET stream', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = b.get(id);
    const reply = b.post(id, request('r'), createFakeReply(acceptsJson));
    await pass();
    a.fake.backend.says(note(1), response('r'));
    await pass();
    expect([reply.given?.kind, get.sink.messages]).toEqual(['json', [note(1)]]);
  });

  it('accepts notifications, and reports those that it cannot accept', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const replies = [note('x'), { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'none' } }];
    const given = replies.map((message) => b.post(id, message));
    await pass();
    expect(given.map((reply) => reply.given)).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    expect(a.fake.backend.sent.items.slice(-2)).toEqual(replies);
    a.fake.backend.answerToSend = 'full';
    const [call, other] = [b.post(id, request('r')), b.post(id, note('y'))];
    await pass();
    expect([call.given, other.given]).toEqual([
      { kind: 'fault', reason: 'server_busy', id: 'r' },
      { kind: 'fault', reason: 'server_busy', id: null },
    ]);
  });

  it('delivers answers to questions of its server', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = b.get(id);
    await pass();
    const question = { jsonrpc: '2.0', id: 's1', method: 'roots/list' };
    a.fake.backend.says(question);
    await pass();
    expect(get.sink.messages).toEqual([question]);
    const reply = b.post(id, response('s1', { roots: [] }));
    await pass();
    expect([reply.given, a.fake.backend.sent.items.at(-1)]).toEqual([
      { kind: 'accepted' },
      response('s1', { roots: [] }),
    ]);
  });

  it('ends, everywhere and with its server, when it is deleted', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const pending = a.post(id, request('r'));
    const reply = b.remove(id);
    await pass();
    expect([reply.given, pending.given]).toEqual([
      { kind: 'removed' },
      { kind: 'fault', reason: 'session_ended', id: 'r' },
    ]);
    expect([a.fake.living, a.sessions.all.length]).toEqual([[], 0]);
    for (const instance of [a, b]) {
      const late = instance.post(id, request('late'));
      await pass();
      expect(late.given).toEqual({ kind: 'fault', reason: 'unknown_session', id: 'late' });
    }
  });

  it('[R7.18] has one GET stream, which goes to the newest listener, at whichever instance', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const first = b.get(id);
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    const second = a.get(id);
    await pass();
    expect([first.sink.messages, first.sink.state]).toEqual([[note(1)], 'ended']);
    a.fake.backend.says(note(2));
    await pass();
    second.leave();
    a.fake.backend.says(note(3));
    await pass();
    const third = b.get(id);
    await pass();
    expect([second.sink.messages, third.sink.messages]).toEqual([[note(2)], [note(3)]]);
  });

  it('notices when a client leaves, and keeps later messages for the next listener', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = b.get(id);
    const lost = b.post(id, request('r'));
    await pass();
    get.leave();
    lost.leave();
    await pass();
    a.fake.backend.says(response('r'), note(1));
    await pass();
    expect(a.telemetry.drops).toEqual(['undeliverable']);
    const next = b.get(id);
    await pass();
    expect(next.sink.messages).toEqual([note(1)]);
  });

  it('[P4] continues a stream whose client comes back through another instance', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = a.post(id, request('r'));
    a.fake.backend.says(note(1), note(2));
    await pass();
    const [, second] = reply.sink.ids;
    reply.leave();
    const resumed = b.get(id, second);
    await pass();
    expect(resumed.sink.messages).toEqual([note(2)]);
    a.fake.backend.says(note(3), response('r'));
    await pass();
    expect([resumed.sink.messages, resumed.sink.state]).toEqual([[note(2), note(3), response('r')], 'ended']);
    const again = b.get(id, resumed.sink.ids.at(-1));
    await pass();
    expect(again.given).toEqual({ kind: 'nothing' });
  });

  it('[P8] pauses its server for a client that does not read, and resumes it when the client reads', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = b.get(id);
    await pass();
    get.sink.keepsUp = false;
    const big = 'x'.repeat(9_000);
    let said = 0;
    for (; said < 500 && !a.fake.backend.isPaused; said += 20) {
      a.fake.backend.says(...Array.from({ length: 20 }, (_, n) => note(`${said + n} ${big}`)));
      await pass(10);
    }
    expect(a.fake.backend.isPaused).toBe(true);
    get.sink.drain();
    await pass(1_000);
    expect(a.fake.backend.isPaused).toBe(false);
    const numbers = get.sink.messages.map(({ params }) => Number.parseInt(params.data, 10));
    expect(numbers).toEqual(Array.from({ length: said }, (_, n) => n));
  });

  it('[P11] does not exist for other users, like a session that was never opened', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const others = [
      b.sessions.anywhere({
        key: keyFromId(id),
        server: b.server,
        principal: { issuer: '', subject: 'x', client: '' },
      }),
      b.sessions.anywhere({
        key: keyFromId(`${id}x`),
        server: b.server,
        principal: { issuer: '', subject: '', client: '' },
      }),
      b.sessions.anywhere({
        key: keyFromId('__proto__'),
        server: b.server,
        principal: { issuer: '', subject: '', client: '' },
      }),
    ];
    for (const other of others) {
      const reply = createFakeReply();
      if (typeof other === 'string') throw new Error(other);
      other.listen(undefined, reply);
      await pass();
      expect(reply.given).toEqual({ kind: 'fault', reason: 'unknown_session', id: null });
    }
  });
});

describe('peer messages that are lost', () => {
  it('[P4] on the way back have their events delivered once a later message arrives', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = b.post(id, request('r'));
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    a.line.lose(1);
    a.fake.backend.says(note(2));
    await pass();
    expect(reply.sink.messages).toEqual([note(1)]);
    a.fake.backend.says(note(3));
    await pass(1_000);
    a.fake.backend.says(note(4), response('r'));
    await pass();
    expect([reply.sink.messages, reply.sink.state]).toEqual([
      [1, 2, 3, 4].map(note).concat(response('r') as never),
      'ended',
    ]);
  });

  it('[P3] [P4] with a JSON answer are answered again by the owner, which runs no call a second time', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [call, read, other] = [b.post(id, request('c')), b.post(id, list('l')), b.post(id, request('o'))];
    await pass();
    a.line.lose(1);
    a.fake.backend.says(response('c'), response('l'));
    await pass();
    a.fake.backend.says(response('o', 'done'));
    await pass(1_000);
    for (const [name, reply] of Object.entries({ c: call, l: read })) {
      expect(reply.given).toMatchObject({ kind: 'json', json: response(name) });
      expect(a.fake.backend.sent.items.filter((message) => message.id === name)).toHaveLength(1);
    }
    expect(other.given?.kind).toMatch(/json|fault/);
  });

  it('[P3] while a call runs do not prevent its answer', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const call = b.post(id, request('c'));
    const get = b.get(id);
    await pass();
    a.line.lose(1);
    a.fake.backend.says({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    await pass();
    const listing = b.post(id, list('l'));
    await pass();
    a.fake.backend.says(response('l'));
    await pass(1_000);
    a.fake.backend.says(response('c', 'done'));
    await pass(1_000);
    const messages =
      call.given?.kind === 'stream' ? call.sink.messages : [call.given?.kind === 'json' && call.given.json];
    expect(messages.at(-1)).toEqual(response('c', 'done'));
    expect([listing.given?.kind, get.isGone]).toEqual([expect.stringMatching(/json|stream/), false]);
    expect(a.fake.backend.sent.items.filter((message) => message.id === 'c')).toHaveLength(1);
  });

  it('[P3] [P7] while a call runs and its owner is uncertain of the store never make it reported as not run', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const call = b.post(id, request('c'), createFakeReply(acceptsJson));
    await pass();
    // Both were cut off for a moment: the one asks again, the other has to register the session first.
    a.line.mend('register');
    b.line.mend();
    await pass(cluster.storeWaitMs + 1_000);
    expect(a.fake.backend.sent.items.filter((message) => message.id === 'c')).toHaveLength(1);
    expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
  });
});

describe('a link between two instances that is lost during a call', () => {
  const question = { jsonrpc: '2.0', id: 's1', method: 'elicitation/create', params: {} };

  it('[P3] [P4] keeps questions, progress and the answer for the client that still waits', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [asked, answered] = [b.post(id, request('asked')), b.post(id, request('answered'))];
    await pass();
    b.line.cut();
    await pass(deadMs); // the other one is taken for dead
    a.fake.backend.says(response('answered', 'kept'), question, note(1));
    await pass();
    expect([asked.given, answered.given]).toEqual([undefined, undefined]);
    b.line.mend();
    await pass(1_000);
    expect([answered.sink.messages, answered.sink.state]).toEqual([[response('answered', 'kept')], 'ended']);
    expect(asked.sink.messages).toEqual([question, note(1)]);
    b.post(id, response('s1', { action: 'accept' }));
    await pass();
    expect(a.fake.backend.sent.items.at(-1)).toEqual(response('s1', { action: 'accept' }));
    a.fake.backend.says(response('asked', 'done'));
    await pass();
    expect([asked.sink.messages.at(-1), asked.sink.state]).toEqual([response('asked', 'done'), 'ended']);
    expect(a.telemetry.drops).toEqual([]);
    expect(a.fake.backend.sent.items.filter((message) => message.method === 'tools/call')).toHaveLength(2);
  });

  it('has a question delivered to any listener, since the client may be lost with its instance', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = a.get(id);
    const call = b.post(id, request('c'));
    await pass();
    b.line.cut();
    await pass(deadMs);
    a.fake.backend.says(question);
    await pass();
    expect([get.sink.messages, call.given]).toEqual([[question], undefined]);
  });

  it('[P3] does not count as lost for a call that its owner had not begun', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    a.line.mend('register'); // what comes now waits until the session is registered
    const call = b.post(id, request('c'));
    await pass();
    expect(a.fake.backend.sent.items.some((message) => message.id === 'c')).toBe(false);
    b.line.mend(); // asks again
    await pass();
    a.line.mend();
    await pass(1_000);
    a.fake.backend.says(response('c', 'done'));
    await pass();
    const messages =
      call.given?.kind === 'stream' ? call.sink.messages : [call.given?.kind === 'json' && call.given.json];
    expect(messages).toEqual([response('c', 'done')]);
    expect(a.fake.backend.sent.items.filter((message) => message.id === 'c')).toHaveLength(1);
  });

  it.each([
    ['before its stream', 60, 20],
    ['in the time of its stream', 60, 60],
    ['long after', 60, 20_000],
  ])('[P3] leaves no abandoned stream even if the link is lost twice, %s', async (_, first, second) => {
    const { a, b, open, pass, store } = await createCluster({ streamAfterMs: 100 });
    const id = await open(a);
    const call = b.post(id, request('c'));
    await pass(first);
    b.line.mend();
    await pass(second);
    b.line.mend();
    await pass(500);
    a.fake.backend.says(response('c', 'done'));
    await pass(500);
    expect([call.sink.messages, call.sink.state]).toEqual([[response('c', 'done')], 'ended']);
    expect(await pendingAfter(store, id)).toEqual([]); // nothing is left for the next owner
  });

  it('[P3] keeps the earlier responses of a batch', async () => {
    const { a, b, open, pass } = await createCluster({ streamAfterMs: 100 });
    const { protocolVersion } = handshake;
    onTestFinished(() => void Object.assign(handshake, { protocolVersion }));
    handshake.protocolVersion = '2025-03-26'; // the one revision with batches
    const id = await open(a);
    const reply = createFakeReply();
    const messages = [request('p'), request('q')].map(readMessage);
    b.at(id).post({ messages, isBatch: true }, reply);
    await pass(20);
    a.fake.backend.says(response('p', 1));
    await pass(20);
    b.line.mend();
    await pass(20);
    a.fake.backend.says(response('q', 2));
    await pass(500);
    expect([reply.sink.messages, reply.sink.state]).toEqual([[response('p', 1), response('q', 2)], 'ended']);
  });

  it.each([
    ['with a stream of it', deadMs - 100],
    ['without', 2 ** 30],
  ])(
    '[P2] is lost for good after a while, %s, and then questions go to any waiting client',
    async (_, streamAfterMs) => {
      const { a, b, open, pass, store } = await createCluster({ streamAfterMs });
      const id = await open(a);
      const waiting = a.post(id, request('waits'));
      const gone = b.post(id, request('gone'));
      await pass();
      b.line.cut();
      await pass(deadMs);
      a.fake.backend.says(question);
      await pass();
      expect(waiting.sink.messages).toEqual([question]);
      a.fake.backend.says(response('waits'));
      await pass(60_000);
      a.fake.backend.says({ ...question, id: 's2' }, response('gone'));
      await pass();
      const get = a.get(id);
      await pass();
      expect(get.sink.messages).toEqual([{ ...question, id: 's2' }]);
      expect(a.telemetry.drops).toEqual(['undeliverable']);
      expect(gone.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'gone' });
      expect(await pendingAfter(store, id)).toEqual([]);
    },
  );

  it('[P2] never gives a new call the answer of an earlier call with the same id', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const first = b.post(id, request('c'));
    await pass();
    a.fake.backend.says(note(1), response('c', 'first'));
    await pass();
    expect(first.sink.messages.at(-1)).toEqual(response('c', 'first'));
    b.line.lose(1); // a is never asked for the second one
    const second = b.post(id, request('c'));
    await pass();
    b.line.mend();
    await pass(1_000);
    expect(second.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
  });
});

describe('a request that was not yet sent to any owner', () => {
  it('[P7] waits for the store at an instance that has just started, and is not abandoned', async () => {
    const { join, pass } = await createCluster();
    const { line, post } = join();
    const reply = post('no-such-session', request('r'));
    await pass(1_000);
    expect(reply.given).toBeUndefined();
    line.mend();
    await pass(1_000);
    expect(reply.given).toEqual({ kind: 'fault', reason: 'unknown_session', id: 'r' });
  });

  it('[P7] has not run, so its refusal says that it may be sent again', async () => {
    const { join, pass } = await createCluster();
    const { post, sessions } = join();
    const tired = post('no-such-session', request('r'));
    await pass(cluster.leaseMs + 3_000);
    expect(tired.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 'r' });
    const waiting = post('no-such-session', request('s'));
    await pass(100);
    const drained = sessions.drain(100);
    await pass(1_000);
    await drained;
    expect(waiting.given).toEqual({ kind: 'fault', reason: 'draining', id: 's' });
  });
});
