import { describe, expect, it } from 'vitest';
import type { CallEvent } from '../../../../src/core/call/call-events.ts';
import { getStream } from '../../../../src/core/store/event-log.ts';
import { acceptsBoth, acceptsJson, type FakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { openSession, type SessionInit } from '../one-session.ts';

const maxEventBytes = 1_000;

const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const ask = (id: string | number, params: object = {}) => ({ jsonrpc: '2.0', id, method: 'roots/list', params });
const cancelled = (requestId: string | number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});
const response = (id: unknown, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const call = (id: string | number, method = 'tools/call') => ({ jsonrpc: '2.0', id, method, params: { name: 'x' } });
const refused = (id: string | number) =>
  expect.objectContaining({ id, error: expect.objectContaining({ data: { reason: 'server_request_refused' } }) });

/** What a client has got on a stream so far. */
const messagesOf = ({ given }: FakeReply) => (given?.kind === 'stream' ? given.sink.messages : []);

/** A session whose server says what the test tells it to. */
async function open({ hasGet = false, ...init }: SessionInit & { readonly hasGet?: boolean } = {}) {
  const one = await openSession({ limits: { maxEventBytes }, ...init });
  const get = hasGet ? one.listen() : undefined;
  await turn();
  const { session, backend, store, telemetry } = one;
  return {
    ...one,
    drops: telemetry.drops,
    /** The server says this, and what comes of it has happened. */
    async receive(...lines: readonly unknown[]): Promise<void> {
      backend.says(...lines);
      for (let n = 0; n < 4; n += 1) await turn();
    },
    call: (id: string | number, method?: string, accepts = acceptsBoth) => one.post([call(id, method)], { accepts }),
    toGet: () => (get === undefined ? [] : messagesOf(get)),
    /** What waits for the next GET stream. */
    async waiting(): Promise<number> {
      const read = await store.log.read('k', getStream, undefined, 10_000);
      return read.outcome === 'ok' ? read.events.length : 0;
    },
    /** True if the client's response to this request is one that the server waits for. */
    settles(id: string | number): boolean {
      const before = one.sent().length;
      one.post([response(id)]);
      return one.sent().length > before;
    },
    inFlight: () => session.snapshot.calls,
  };
}

describe('[R6.03] [F17] server output that is no message for a client', () => {
  it.each([
    ['an unknown id', response(9)],
    ['an id of another type', response('1')],
    ['the id null', { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'x' } }],
  ])('such as a response to %s is dropped, and never goes to a stream', async (_, message) => {
    const one = await open({ hasGet: true });
    const reply = one.call(1);
    await one.receive(message);
    expect([one.drops, one.toGet(), reply.given]).toEqual([['unknown_response'], [], undefined]);
  });

  const nested = '['.repeat(1_001) + ']'.repeat(1_001);
  const tooComplex = { error: { data: { reason: 'response_too_complex' } } };

  it('[P3] [S-05] ends a call at once if it is a too complex response', async () => {
    const one = await open();
    const replies = [one.call(1), one.call('b')];
    await one.receive(log); // so that one of them is a stream
    await one.receive(
      `{"result":{"a":${nested}},"jsonrpc":"2.0","id":1}`,
      `{"jsonrpc":"2.0","id":"b","result":${nested}}`,
    );
    // The log message went to the newer one.
    expect(replies[0]?.given).toMatchObject({ kind: 'fault', id: 1, reason: 'response_too_complex' });
    expect(messagesOf(replies[1] as FakeReply)).toMatchObject([log, { id: 'b', ...tooComplex }]);
    await one.receive(`{"jsonrpc":"2.0","id":9,"result":${nested}}`);
    expect(one.drops).toEqual(['unknown_response']);
  });

  it('[P3] [S-05] fails initialize if it is a too complex response', async () => {
    const one = await open({ handshake: null });
    await one.receive(`{"result":{"a":${nested}},"jsonrpc":"2.0","id":0}`);
    expect(one.opening.given).toMatchObject({ kind: 'json', json: { id: 0, ...tooComplex } });
  });

  it('[P3] [S-05] is refused if it is a too complex request, even under the id of a call', async () => {
    const one = await open();
    const reply = one.call(1);
    await one.receive(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"a":${nested}}}`);
    expect([one.drops, reply.given, one.inFlight()]).toEqual([['oversized'], undefined, 1]);
    expect(one.sent().at(-1)).toEqual(refused(1));
  });

  it('is dropped if it is a second response to a request', async () => {
    const one = await open();
    const reply = one.call(1);
    await one.receive(response(1, { n: 1 }), response(1, { n: 2 }));
    expect(reply.given).toMatchObject({ json: { result: { n: 1 } } });
    expect(one.drops).toEqual(['unknown_response']);
  });
});

describe('requests of a server to its client', () => {
  it('go to their call, and so does their cancellation, even if another call is newer by then', async () => {
    const one = await open({ hasGet: true });
    const first = one.call(1);
    await one.receive(ask('s1'));
    const second = one.call(2);
    await one.receive(cancelled('s1'));
    expect(messagesOf(first)).toEqual([ask('s1'), cancelled('s1')]);
    expect([second.given, one.toGet()]).toEqual([undefined, []]);
  });

  it('go to the GET stream without a call, and so does their cancellation, even if a call came since', async () => {
    const one = await open({ hasGet: true });
    await one.receive(ask('s1'));
    const reply = one.call(1);
    await one.receive(cancelled('s1'));
    expect([reply.given, one.toGet()]).toEqual([undefined, [ask('s1'), cancelled('s1')]]);
  });

  it('that were cancelled are no longer open', async () => {
    const one = await open();
    await one.receive(ask('s1'), ask(1), cancelled('s1'));
    expect([one.settles('s1'), one.settles('1'), one.settles(1)]).toEqual([false, false, true]);
  });

  it('[R7.23] are open until the client has answered, once', async () => {
    const one = await open();
    await one.receive(ask('s1'));
    expect([one.settles('s1'), one.settles('s1')]).toEqual([true, false]);
  });

  it('whose stream is gone have their cancellation sent by attribution', async () => {
    const one = await open({ hasGet: true });
    one.call(1);
    await one.receive(ask('s1'), response(1), cancelled('s1'));
    expect(one.toGet()).toEqual([cancelled('s1')]);
  });

  it('[P8] beyond a thousand open ones are answered by the gateway until one is settled', async () => {
    const limits = { maxEventBytes, logLimits: { maxEvents: 10_000, maxBytes: 10_000_000 } };
    const one = await open({ limits });
    await one.receive(...Array.from({ length: 1_000 }, (_, id) => ask(id)));
    expect([await one.waiting(), one.sent()]).toEqual([1_000, []]);
    await one.receive(ask('more'));
    expect([await one.waiting(), one.sent()]).toEqual([1_000, [refused('more')]]);
    expect(one.settles(5)).toBe(true);
    await one.receive(ask('more'));
    expect([await one.waiting(), one.sent().length]).toEqual([1_001, 2]);
  });

  const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' };

  it.each([false, true])(
    'that are pings are answered by the gateway if no client listens: a GET stream is %s',
    async (hasGet) => {
      const one = await open({ hasGet });
      await one.receive(ping);
      expect([one.sent(), one.toGet()]).toEqual(hasGet ? [[], [ping]] : [[response('p')], []]);
    },
  );

  it('that are pings are answered by the gateway before the answer to initialize: its client may not know its session', async () => {
    const one = await open({ handshake: null });
    await one.receive(ping);
    expect([one.sent(), one.opening.given]).toEqual([[response('p')], undefined]);
  });

  it('[P8] larger than an event may be are answered by the gateway, so that the server does not wait', async () => {
    const one = await open({ hasGet: true });
    await one.receive(ask('s1', { text: 'x'.repeat(maxEventBytes) }));
    expect([one.toGet(), one.drops, one.sent()]).toEqual([[], ['oversized'], [refused('s1')]]);
    expect(one.settles('s1')).toBe(false);
  });
});

describe('[P8] a server’s notification that is larger than an event may be', () => {
  it('is dropped and counted, and its call goes on', async () => {
    const one = await open();
    const reply = one.call(1);
    await one.receive({ ...log, params: { level: 'info', data: 'x'.repeat(maxEventBytes) } }, log);
    expect([messagesOf(reply), one.drops, one.inFlight()]).toEqual([[log], ['oversized'], 1]);
  });
});

describe('the measured end of a call', () => {
  async function openMeasured(init: SessionInit = {}) {
    const events: CallEvent[] = [];
    const one = await open({ calls: { wantsNames: false, emit: (event) => void events.push(event) }, ...init });
    const ended = () => events.filter((event) => event.type === 'call-ended' && event.method === 'tools/call');
    return { ...one, ended };
  }

  it('is its response if it is answered as JSON', async () => {
    const one = await openMeasured();
    one.call(1, 'tools/call', acceptsJson);
    one.backend.says(response(1));
    expect(one.ended()).toHaveLength(1);
  });

  it('is the fault with which its session ends it, with the session and the id of the client', async () => {
    const one = await openMeasured();
    const reply = one.call(1, 'tools/call', acceptsJson);
    one.backend.leaves([1], 'server_busy');
    expect(reply.given).toMatchObject({ kind: 'fault', reason: 'server_busy' });
    const outcome = { kind: 'fault', reason: 'server_busy' };
    expect(one.ended()).toMatchObject([{ outcome, id: 1, origin: { session: one.session.name.session } }]);
  });

  it('is the logged response if it is answered on a stream, and that wait counts for the gateway', async () => {
    let goOn: () => void = () => undefined;
    let mayStore = Promise.resolve();
    const one = await openMeasured({
      wrap: (store) => ({
        ...store,
        log: { read: store.log.read, append: (...of) => mayStore.then(() => store.log.append(...of)) },
      }),
    });
    one.call(1);
    await one.receive(log);
    mayStore = new Promise((resolve) => {
      goOn = resolve;
    });
    await one.receive(response(1));
    expect(one.ended()).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 30));
    goOn();
    for (let n = 0; n < 4; n += 1) await turn();
    const [end] = one.ended() as { readonly durationMs: number; readonly serverMs: number }[];
    expect(end?.durationMs).toBeGreaterThanOrEqual(25);
    expect((end?.durationMs ?? 0) - (end?.serverMs ?? 0)).toBeGreaterThanOrEqual(25);
  });
});

describe('[P4] a question of the server marks the calls that may have caused it, which never run again', () => {
  const elicitation = { jsonrpc: '2.0', id: 's', method: 'elicitation/create', params: {} };

  async function withCalls(hasGet = false) {
    const one = await open({ hasGet });
    for (const [id, method] of [
      [1, 'tools/call'],
      [2, 'tools/list'],
      [3, 'tools/call'],
    ] as const)
      one.call(id, method);
    return { ...one, marked: () => one.session.calls.all().flatMap(({ id, hasAsked }) => (hasAsked ? [id] : [])) };
  }

  it('all that can ask, if the question does not name one', async () => {
    const one = await withCalls(true);
    await one.receive(elicitation);
    expect([one.toGet(), one.marked()]).toEqual([[elicitation], [1, 3]]);
  });

  it('only the call that it came with, if the server says so', async () => {
    const one = await withCalls();
    one.backend.saysBeside([3], elicitation);
    expect(one.marked()).toEqual([3]);
  });

  it('the call on whose stream it goes, and all that can ask, if the server does not say so', async () => {
    const one = await open();
    one.call(2, 'tools/list');
    await one.receive(elicitation);
    expect(one.session.calls.all().map(({ id, hasAsked }) => [id, hasAsked])).toEqual([[2, true]]);
  });

  it('none, if it is a ping, which a client answers by itself', async () => {
    const one = await withCalls();
    one.backend.saysBeside([3], { jsonrpc: '2.0', id: 's', method: 'ping' });
    expect(one.marked()).toEqual([]);
  });
});
