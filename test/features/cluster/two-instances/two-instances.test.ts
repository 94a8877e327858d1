import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { keyFromId } from '../../../../src/core/session/session-key.ts';
import type { PendingCall } from '../../../../src/core/store/event-log.ts';
import { OtherRecordVersion } from '../../../../src/core/store/session-records.ts';
import type { ClusterStore } from '../../../../src/core/store/store.ts';
import { handshake, note, request, response } from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { acceptsJson, createFakeReply } from '../../../support/fake-reply.ts';
import { cluster, createCluster, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

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

describe('a session that is used through an instance that does not hold it', () => {
  it('answers a request with JSON, by one request to its owner', async () => {
    const { a, b, bus, open, pass } = await createCluster();
    const id = await open(a);
    const before = bus.sent;
    const reply = b.post(id, request('r'));
    await pass();
    expect([reply.given, a.fake.backend.sent.items.at(-1)]).toEqual([undefined, request('r')]);
    a.fake.backend.says(response('r', { n: 1 }));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'json', json: response('r', { n: 1 }) });
    expect(bus.sent - before).toBe(1);
    expect(b.fake.opened).toEqual([]);
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

  it('[C-10] answers 503 if another release of the gateway has written the record, and not 404', async () => {
    const { a, b, store, open, pass } = await createCluster();
    const id = await open(a);
    vi.spyOn(store.sessions, 'find').mockRejectedValue(new OtherRecordVersion(2, 1, 1));
    const replies = [b.post(id, request('r')), b.post(id, note(1))];
    await pass();
    expect(replies.map(({ given }) => given)).toMatchObject([
      { kind: 'fault', reason: 'instances_differ', id: 'r' },
      { kind: 'fault', reason: 'instances_differ', id: null },
    ]);
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

describe('a connection between two instances that is lost during a call', () => {
  const question = { jsonrpc: '2.0', id: 's1', method: 'elicitation/create', params: {} };

  it('[P3] [P4] has the stream continue after its last event, on the client’s connection', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = b.post(id, request('r'));
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    b.peers.break();
    a.fake.backend.says(note(2), question);
    await pass(1_000);
    a.fake.backend.says(note(3), response('r'));
    await pass();
    expect([reply.sink.messages, reply.sink.state]).toEqual([
      [note(1), note(2), question, note(3), response('r')],
      'ended',
    ]);
    expect(a.fake.backend.sent.items.filter((message) => message.id === 'r')).toHaveLength(1);
  });

  it('[P3] [P4] has the GET stream continue after its last event', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = b.get(id);
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    b.peers.break();
    a.fake.backend.says(note(2));
    await pass(1_000);
    a.fake.backend.says(note(3));
    await pass();
    expect([get.sink.messages, get.sink.state]).toEqual([[1, 2, 3].map(note), 'open']);
  });

  it('[P3] [P7] before its first event: what only reads runs again and is answered once, anything else has an unknown outcome', async () => {
    const { a, b, open, pass, store } = await createCluster();
    const id = await open(a);
    const [call, read] = [b.post(id, request('c')), b.post(id, list('l'))];
    await pass();
    b.peers.break();
    await pass(1_000);
    expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
    const ran = a.fake.backend.sent.items.filter(({ method }) => method.startsWith('tools/'));
    const [, , { id: newId }] = ran as [unknown, unknown, { id: string }];
    expect(ran).toEqual([request('c'), list('l'), list(newId)]);
    a.fake.backend.says(response('c', 'late'), response('l', 'late'));
    await pass();
    expect(read.given).toBeUndefined();
    a.fake.backend.says(response(newId, 'once'));
    await pass();
    expect(read.given).toMatchObject({ kind: 'json', json: response('l', 'once') });
    expect(await pendingAfter(store, id)).toEqual([]); // nothing is left for the next owner
  });

  it('[P3] [P7] while its owner is uncertain of the store: the call is never reported as not run', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const call = b.post(id, request('c'), createFakeReply(acceptsJson));
    await pass();
    a.line.mend('register');
    b.peers.break();
    await pass(cluster.storeWaitMs + 1_000);
    expect(a.fake.backend.sent.items.filter((message) => message.id === 'c')).toHaveLength(1);
    expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
  });

  it.each([60, 20_000])('[P3] leaves no abandoned stream, %i ms after its beginning', async (ms) => {
    const { a, b, open, pass, store } = await createCluster({ streamAfterMs: 10 });
    const id = await open(a);
    const call = b.post(id, request('c'));
    await pass(ms);
    b.peers.break();
    await pass(500);
    b.peers.break();
    await pass(500);
    a.fake.backend.says(response('c', 'done'));
    await pass(500);
    expect([call.sink.messages, call.sink.state]).toEqual([[response('c', 'done')], 'ended']);
    expect(await pendingAfter(store, id)).toEqual([]); // nothing is left for the next owner
  });

  it('[P3] keeps the earlier responses of a batch', async () => {
    const { a, b, open, pass } = await createCluster({ streamAfterMs: 10 });
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
    b.peers.break();
    await pass(20);
    a.fake.backend.says(response('q', 2));
    await pass(500);
    expect([reply.sink.messages, reply.sink.state]).toEqual([[response('p', 1), response('q', 2)], 'ended']);
  });

  it('[P2] never gives a new call the answer of an earlier call with the same id', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const first = b.post(id, request('c'));
    await pass();
    a.fake.backend.says(note(1), response('c', 'first'));
    await pass();
    expect(first.sink.messages.at(-1)).toEqual(response('c', 'first'));
    const second = b.post(id, request('c'));
    await pass();
    b.peers.break();
    await pass(1_000);
    expect(second.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
  });
});

describe('two instances that reach the store but not each other', () => {
  it('[P3] [P7] refuse a call before anything ran, and serve it once they reach each other', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    b.peers.cut();
    const [call, get] = [b.post(id, request('c')), b.get(id)];
    await pass(cluster.storeWaitMs);
    expect(call.given).toBeUndefined();
    await pass(2 * cluster.leaseMs);
    expect(call.given).toEqual({ kind: 'fault', reason: 'owner_unreachable', id: 'c' });
    expect(a.fake.backend.sent.items.some((message) => message.id === 'c')).toBe(false);
    expect([get.sink.state, b.telemetry.adoptions]).toEqual(['open', []]);
    b.peers.mend();
    await pass(1_000);
    const again = b.post(id, request('c'));
    await pass();
    a.fake.backend.says(response('c'), note(1));
    await pass();
    expect([again.given?.kind, get.sink.messages]).toEqual(['json', [note(1)]]);
  });

  it('[P3] [F01] go on with a session once its owner has lost its lease, too', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    b.peers.cut();
    const refused = b.post(id, request('r'));
    await pass(2 * cluster.leaseMs);
    expect(refused.given).toMatchObject({ reason: 'owner_unreachable' });
    a.line.cut();
    await pass(takeoverMs);
    const reply = b.post(id, request('r'));
    await pass(1_000);
    b.fake.backend.says(response('r'));
    await pass();
    expect([reply.given?.kind, b.telemetry.adoptions.length]).toEqual(['json', 1]);
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
