import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Server } from '../../../../src/core/server/server.ts';
import { keyFromId } from '../../../../src/core/session/session-key.ts';
import { errorTo, initialize, nobody, note, request, response } from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { acceptsJson, createFakeReply } from '../../../support/fake-reply.ts';
import { cluster, createCluster, leaseMs, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const list = (id: string | number) => request(id, 'tools/list', {});
const listChanged = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

describe('[F01] a session whose owner is lost', () => {
  it('[P3] is taken over within a lease and two seconds, and continues to serve', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    a.line.cut();
    const get = b.get(id);
    await pass(leaseMs + 2_000);
    expect([b.telemetry.adoptions, b.fake.backend.sent.items]).toEqual([
      [{ pending: 0 }],
      [expect.objectContaining({ method: 'initialize' }), { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ]);
    expect(get.sink.messages).toEqual([listChanged]);
    const reply = b.post(id, request('r'));
    await pass();
    b.fake.backend.says(response('r'));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'json', json: response('r') });
  });

  it('[P7] is not taken over while its owner renews its lease, however slow it is', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = b.post(id, request('r'));
    await pass(5 * leaseMs);
    expect([reply.given, b.telemetry.adoptions]).toEqual([undefined, []]);
    a.fake.backend.says(response('r'));
    await pass();
    expect(reply.given?.kind).toBe('json');
  });

  it('[P3] answers its waiting calls: those that only read run again, the others have an unknown outcome', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [read, call] = [b.post(id, list('l')), b.post(id, request('c'))];
    await pass();
    a.line.cut();
    await pass(takeoverMs);
    expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
    expect(b.fake.backend.sent.items.filter(({ method }) => method.startsWith('tools/'))).toEqual([list('l')]);
    b.fake.backend.says(response('l'));
    await pass();
    expect(read.given).toMatchObject({ kind: 'json', json: response('l') });
  });

  it('[U-06] [P3] [P7] does not keep clients waiting forever at an ingress that is cut off', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const call = b.post(id, request('c'), createFakeReply(acceptsJson));
    const stream = b.post(id, request('d'));
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    b.line.cut();
    const get = b.get(id);
    const early = b.post(id, request('e'), createFakeReply(acceptsJson));
    await pass(cluster.leaseMs - 1_500);
    expect([call.given, stream.sink.state]).toEqual([undefined, 'open']);
    await pass(3_500);
    expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
    expect([stream.sink.messages, stream.sink.state]).toEqual([[note(1)], 'ended']); // its client has a place in the log
    expect(early.given).toMatchObject({ kind: 'fault', reason: 'store_unavailable' }); // nobody was asked
    expect(get.sink.state).toBe('open');
    const late = [b.post(id, request('f')), b.get(id, stream.sink.ids.at(-1))];
    await pass(cluster.leaseMs + 2_500);
    expect(late[0]?.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 'f' });
    expect([late[1]?.sink.messages, late[1]?.sink.state]).toEqual([[], 'ended']);
  });

  it('[U-06] [P3] [P7] does not keep clients waiting at an owner that is cut off', async () => {
    const { a, open, pass } = await createCluster({ streamAfterMs: 100 });
    const id = await open(a);
    const json = a.post(id, request('c'), createFakeReply(acceptsJson));
    const stream = a.post(id, request('d'));
    await pass(200);
    a.fake.backend.says(note(1));
    await pass();
    const get = a.get(id);
    a.line.cut();
    const unstored = a.post(id, request('e'));
    await pass(cluster.leaseMs - 1_000);
    a.fake.backend.says(response('c'), response('d'), response('e'));
    await pass(500);
    expect([json.given, stream.sink.state, unstored.sink.state]).toEqual([undefined, 'open', 'open']);
    await pass(2_000);
    expect([stream.sink.messages.at(-1), stream.sink.state]).toEqual([note(1), 'ended']);
    expect([unstored.sink.messages.at(-1), unstored.sink.state]).toEqual([errorTo('e', 'outcome_unknown'), 'ended']);
    await pass(cluster.leaseMs + 500);
    expect(json.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'c' });
    expect(get.sink.state).toBe('open');
    a.line.mend();
    await pass(1_000);
    const resumed = a.get(id, stream.sink.ids.at(-1));
    await pass();
    expect([resumed.sink.messages, resumed.sink.state]).toEqual([[response('d')], 'ended']);
  });

  it('[P4] continues the streams of clients on their existing connections', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [read, call] = [
      b.post(id, request('l', 'tools/list', { _meta: { progressToken: 't' } })),
      b.post(id, request('c', 'tools/call', { name: 'x', _meta: { progressToken: 'u' } })),
    ];
    await pass();
    const progress = (progressToken: string, value: number) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: value },
    });
    a.fake.backend.says(progress('t', 1), progress('u', 1), progress('t', 2));
    await pass();
    a.line.cut();
    await pass(takeoverMs);
    b.fake.backend.says(progress('t', 2), progress('t', 3), response('l'));
    await pass();
    expect([read.sink.messages, read.sink.state]).toEqual([
      [progress('t', 1), progress('t', 2), progress('t', 3), response('l')],
      'ended',
    ]);
    expect([call.sink.messages, call.sink.state]).toEqual([
      [progress('u', 1), errorTo('c', 'outcome_unknown')],
      'ended',
    ]);
    for (const { sink } of [read, call]) {
      const primings = sink.events.items.filter(({ data }) => data === '');
      expect(primings).toHaveLength(1); // it is the same stream, on the same connection
      expect(new Set(sink.ids).size).toBe(sink.ids.length);
    }
  });

  it('[F03] serves complete streams from its log without an owner', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = a.post(id, request('r'));
    a.fake.backend.says(note(1), response('r'));
    await pass();
    a.line.cut();
    const resumed = b.get(id, reply.sink.ids[0]);
    await pass(0);
    expect([resumed.sink.messages, resumed.sink.state]).toEqual([[note(1), response('r')], 'ended']);
    expect(b.fake.opened).toEqual([]);
  });

  it('[P7] keeps a GET waiting on an open stream, and a POST until the session has an owner', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    await pass(0);
    a.line.cut();
    const get = b.get(id);
    await pass(1_100);
    expect(get.given?.kind).toBe('stream');
    await pass(takeoverMs);
    expect(get.sink.state).toBe('open');
  });

  it('[P6] [F02] [F11] ends with its server at the returning old owner, of which no message reaches clients', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [call, read, get] = [a.post(id, request('c')), a.post(id, list('l')), a.get(id)];
    await pass();
    a.line.cut();
    const other = b.get(id);
    await pass(takeoverMs);
    expect(b.telemetry.adoptions).toHaveLength(1);
    a.fake.backend.says(note('never stored'));
    const before = [...get.sink.messages];
    await pass();
    a.line.mend();
    await pass(takeoverMs);
    expect(await a.telemetry.ends.next()).toBe('moved');
    expect([a.fake.living, get.sink.messages, get.sink.state]).toEqual([[], before, 'ended']);
    expect(call.given).toMatchObject({ reason: 'outcome_unknown', id: 'c' });
    // What only reads is run again by who has the session now, for the client that still waits here.
    b.fake.backend.says(response('l', 'of b'));
    await pass();
    expect(read.given).toMatchObject({ kind: 'json', json: response('l', 'of b') });
    b.fake.backend.says(note('new'));
    await pass();
    expect(other.sink.messages).toEqual([listChanged, note('new')]);
    const again = a.post(id, request('d'));
    await pass();
    b.fake.backend.says(response('d'));
    await pass();
    expect(again.given).toMatchObject({ kind: 'json', json: response('d') });
  });

  it('[P6] holds a JSON answer of an owner that may have lost it until the lease is certain', async () => {
    const { a, open, pass } = await createCluster();
    const id = await open(a);
    const reply = a.post(id, request('r'));
    a.line.cut();
    await pass(leaseMs - 1_000);
    a.fake.backend.says(response('r'));
    await pass();
    expect(reply.given).toBeUndefined();
    a.line.mend();
    await pass(takeoverMs);
    expect(reply.given).toMatchObject({ kind: 'json', json: response('r') });
  });

  it('[P3] is not treated as lost because the instance itself stood still, which checks first', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const reply = b.post(id, request('r'));
    await pass();
    b.line.cut();
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 5 * leaseMs);
    onTestFinished(() => void vi.restoreAllMocks());
    await pass(leaseMs - 2_000);
    expect(reply.given).toBeUndefined();
    await pass(4_000);
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'r' });
  });

  it('refuses a request at once while its owner is without the store', async () => {
    const { a, open, pass } = await createCluster();
    const id = await open(a);
    a.line.cut();
    await pass(leaseMs);
    const reply = a.post(id, request('r'));
    await pass(1_000);
    expect(reply.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 'r' });
    expect(a.fake.backend.sent.items.some((message) => message.id === 'r')).toBe(false);
  });

  it('[P7] is continued by its owner after an outage in which nobody took it over', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const get = a.get(id);
    await pass();
    a.line.cut();
    a.fake.backend.says(note(1));
    await pass(3 * leaseMs);
    expect(get.sink.messages).toEqual([]);
    a.line.mend();
    await pass(takeoverMs);
    expect([get.sink.messages, a.telemetry.ends.items, b.telemetry.adoptions]).toEqual([[note(1)], [], []]);
    const reply = b.post(id, request('r'));
    await pass();
    a.fake.backend.says(response('r'));
    await pass();
    expect(reply.given?.kind).toBe('json');
  });

  it('[P7] has its owner report degraded for a while, then unavailable, then ready', async () => {
    const { a, pass } = await createCluster();
    expect(a.sessions.readiness).toBe('ready');
    a.line.cut();
    await pass(leaseMs);
    expect(a.sessions.readiness).toBe('degraded');
    await pass(2 * leaseMs);
    expect(a.sessions.readiness).toBe('unavailable');
    a.line.mend();
    await pass(1_000);
    expect(a.sessions.readiness).toBe('ready');
  });
});

describe('[P9] a session whose owner stops', () => {
  it('is released when no request is in flight, and is taken over at once by the next requested instance', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const here = a.get(id);
    const there = b.get(id);
    const busy = b.post(id, request('busy'));
    await pass();
    const drained = a.sessions.drain(10_000);
    await pass();
    expect(there.sink.state).toBe('open');
    a.fake.backend.says(response('busy'));
    await pass(1_000);
    expect(busy.given?.kind).toBe('json');
    expect([a.fake.living, here.sink.state]).toEqual([[], 'ended']);
    const reply = b.post(id, request('r'));
    await pass(1_000);
    b.fake.backend.says(response('r'));
    await pass();
    expect(reply.given?.kind).toBe('json');
    expect([b.telemetry.adoptions, await a.telemetry.ends.next()]).toEqual([[{ pending: 0 }], 'released']);
    await pass(3_000);
    await drained;
    b.fake.backend.says(note('of b'));
    await pass();
    expect([there.sink.messages.at(-1), there.sink.state]).toEqual([note('of b'), 'open']); // on the same connection
  });

  it('is passed on to another instance by requests that still come to the stopping one, and so are new sessions', async () => {
    const current: { server?: Server } = {};
    const { a, b, open, pass } = await createCluster({ currentServer: () => current.server });
    current.server = b.server;
    const id = await open(a);
    const other = b.get(id); // a and b know each other
    const busy = a.post(await open(a), request('busy')); // keeps a stopping
    await pass();
    const drained = a.sessions.drain(10_000);
    await pass(1_000);
    const requests = [a.post(id, request('r')), a.post(id, request('s'))];
    await pass(1_000);
    b.fake.backend.says(response('r'), response('s'));
    await pass();
    expect(requests.map(({ given }) => given?.kind)).toEqual(['json', 'json']);
    expect(b.telemetry.adoptions).toEqual([{ pending: 0 }]);
    const later = a.post(id, request('later'));
    await pass();
    b.fake.backend.says(response('later'));
    await pass();
    expect([later.given?.kind, b.telemetry.adoptions.length]).toEqual(['json', 1]);

    const opened = createFakeReply();
    a.sessions.open(a.server, nobody, readMessage(initialize), opened);
    await pass();
    expect(opened.given).toMatchObject({ kind: 'json', headers: { 'mcp-session-id': expect.stringMatching(/.{43}/) } });
    expect(b.sessions.count).toBe(2);
    a.fake.backend.says(response('busy'));
    await pass(15_000);
    await drained;
    expect(busy.given?.kind).toBe('json');
    other.leave();
  });

  it('is refused by a stopping instance that knows no other one', async () => {
    const { a, open, pass } = await createCluster();
    const id = await open(a);
    const busy = a.post(await open(a), request('busy'));
    await pass();
    const drained = a.sessions.drain(10_000);
    await pass(1_000);
    const refused = a.post(id, request('r'));
    const opened = createFakeReply();
    a.sessions.open(a.server, nobody, readMessage(initialize), opened);
    await pass();
    expect([refused.given, opened.given]).toMatchObject([{ reason: 'draining' }, { reason: 'draining' }]);
    a.fake.backend.says(response('busy'));
    await pass(15_000);
    await drained;
    expect(busy.given?.kind).toBe('json');
  });

  it('[C-01] is free for the next instance at once if the stopping owner was about to take it over', async () => {
    const { a, b, store, open, pass, join } = await createCluster();
    const id = await open(a);
    const c = join();
    c.line.mend();
    await pass(takeoverMs);
    const gone = a.sessions.drain(0);
    await pass(takeoverMs);
    await gone;
    const { takeOver } = store.sessions;
    let goOn: () => void = () => undefined;
    const waits = new Promise<void>((resolve) => (goOn = resolve));
    const held = vi.spyOn(store.sessions, 'takeOver').mockImplementationOnce(async (...of) => {
      await waits;
      return takeOver.call(store.sessions, ...of);
    });
    const early = b.post(id, request('r'));
    await pass();
    expect(held).toHaveBeenCalledOnce();
    let isOver = false;
    const drained = b.sessions.drain(20_000).then(() => (isOver = true));
    await pass(5_000);
    expect(isOver).toBe(false);
    goOn();
    await pass(5_000);
    await drained;
    expect(early.given).toEqual({ kind: 'fault', reason: 'draining', id: 'r' });
    expect([b.fake.opened, b.telemetry.adoptions, b.sessions.all]).toEqual([[], [], []]);
    expect((await store.sessions.find(keyFromId(id)))?.owner).toBe('');
    const next = c.post(id, request('n'));
    await pass();
    c.fake.backend.says(response('n'));
    await pass();
    expect(next.given?.kind).toBe('json');
  });

  it('has calls in flight at the end of the grace answered once with an error', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const [here, there] = [a.post(id, request('h')), b.post(id, request('t'))];
    await pass();
    const drained = a.sessions.drain(1_000);
    await pass(3_000);
    await drained;
    expect(here.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'h' });
    expect(there.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 't' });
  });
});
