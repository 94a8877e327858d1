import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SessionOptions } from '../../../../src/core/session/session-options.ts';
import type { EventLog } from '../../../../src/core/store/event-log.ts';
import { getStream } from '../../../../src/core/store/event-log.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { acceptsSse, type FakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { openSession } from '../one-session.ts';
import { note, request } from '../session-fixture.ts';

interface OpenOptions extends Partial<SessionOptions> {
  readonly log?: (log: EventLog) => EventLog;
  readonly maxEvents?: number;
}

/** A session whose server speaks to the GET stream, and whose log is the test's to change. */
async function open({ log: wrap = (log: EventLog) => log, maxEvents = 80, ...limits }: OpenOptions = {}) {
  const one = await openSession({
    limits: { logLimits: { maxEvents, maxBytes: 1_000_000 }, ...limits },
    wrap: (store) => ({ ...store, log: wrap(store.log) }),
  });
  return {
    ...one,
    async stored(): Promise<number> {
      const read = await one.store.log.read('k', getStream, undefined, 100_000);
      return read.outcome === 'ok' ? read.events.length : 0;
    },
    /** What a stream has got: the numbers of the lines. */
    got: (messages: readonly { params?: { data?: unknown } }[]) => messages.map(({ params }) => params?.data),
  };
}

const lines = (from: number, to: number) => numbers(from, to).map(note);
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);
const upTo =
  (n: number) =>
  ({ data = '' }: { data?: string }): boolean =>
    data.includes(`"data":${n}}`);

/** What a client has got on a stream so far. */
const messagesOf = ({ given }: FakeReply) => (given?.kind === 'stream' ? given.sink.messages : []);

describe('the way from the server to its client', () => {
  it('[P5] delivers lines to a listener in order, each after it is in the log', async () => {
    let appended = 0;
    const one = await open({
      log: (log) => ({
        read: log.read,
        async append(key, at, tail, events) {
          await turn();
          const outcome = await log.append(key, at, tail, events);
          appended += events.length;
          return outcome;
        },
      }),
    });
    const { sink } = one.listen();
    await turn();
    one.backend.says(...lines(0, 30));
    while (sink.messages.length < 30) {
      await turn();
      expect(sink.messages.length).toBeLessThanOrEqual(appended);
    }
    expect(one.got(sink.messages)).toEqual(numbers(0, 30));
  });

  it('[P5] stores lines that come before anybody listens, and then delivers them', async () => {
    const one = await open();
    one.backend.says(...lines(0, 5));
    await turn();
    expect(await one.stored()).toBe(5);
    const { sink } = one.listen();
    await sink.events.next(upTo(4));
    expect(one.got(sink.messages)).toEqual(numbers(0, 5));
  });

  it('[P8] evicts no unsent event of a reading listener in a burst far larger than the log', async () => {
    const one = await open();
    const { sink } = one.listen();
    await turn();
    one.backend.says(...lines(0, 5_000));
    await sink.events.next(upTo(4_999));
    expect(one.got(sink.messages)).toEqual(numbers(0, 5_000));
  });

  it('[P8] pauses the server at half of the log for a listener who does not read, and loses nothing', async () => {
    const one = await open();
    const { sink } = one.listen();
    await turn();
    sink.keepsUp = false;
    one.backend.says(...lines(0, 200));
    await turn();
    expect(one.backend.isPaused).toBe(true);
    expect(sink.messages.length).toBeLessThan(80);
    sink.drain();
    await sink.events.next(upTo(199));
    expect(one.got(sink.messages)).toEqual(numbers(0, 200));
    await turn();
    expect(one.backend.isPaused).toBe(false);
  });

  it('[F12] finishes the waiting lines after the server has ended, even if a listener lags', async () => {
    const one = await open();
    const { sink } = one.listen();
    await turn();
    sink.keepsUp = false;
    one.backend.says(...lines(0, 70));
    one.backend.ends();
    await turn();
    sink.drain();
    await sink.events.next(upTo(69));
    expect(one.got(sink.messages)).toEqual(numbers(0, 70));
  });

  it('[P9] stores and delivers what the server has said before it closes its connections', async () => {
    const one = await open();
    const { sink } = one.listen();
    await turn();
    const call = one.post([request(1)], { accepts: acceptsSse });
    one.backend.says(note(0), { jsonrpc: '2.0', id: 1, result: {} }, note(1));
    await one.session.end('deleted');
    const results = call.sink.messages.map(({ id, params }) => id ?? params.data);
    expect([results, call.sink.state, one.got(sink.messages), sink.state]).toEqual([[0, 1], 'ended', [1], 'ended']);
  });

  describe('while the store is away', () => {
    /** A session with a call on a stream, and a log that refuses each append until it is back. */
    async function openAway(options: Parameters<typeof open>[0] = {}) {
      let isAway = false;
      let attempts = 0;
      const one = await open({
        ...options,
        log: (log) => ({
          read: log.read,
          append(...of) {
            attempts += 1;
            return isAway ? Promise.reject(new StoreUnavailable('unreachable')) : log.append(...of);
          },
        }),
      });
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
      /** Two further attempts have begun, so that one of them has failed. */
      const tried = async (): Promise<void> => {
        const before = attempts;
        while (attempts < before + 2) await turn();
      };
      const setAway = (value: boolean): void => {
        isAway = value;
      };
      /** The call gets nothing before an answer has waited for the log for its time, which has passed then. */
      const waitsForLog = async (call: ReturnType<typeof send>): Promise<void> => {
        await tried();
        vi.advanceTimersByTime(2_999);
        await tried();
        expect(messagesOf(call)).toEqual([]);
        vi.advanceTimersByTime(1);
        await tried();
        await tried();
      };
      const send = (id: number) => one.post([request(id)], { accepts: acceptsSse });
      return { ...one, tried, waitsForLog, setAway, send };
    }

    it('[F09] [P3] [P5] sends an answer after its time with what is before it, without event ids', async () => {
      const one = await openAway();
      one.setAway(true);
      const call = one.send(1);
      const answer = { jsonrpc: '2.0', id: 1, result: {} };
      one.backend.says(...lines(1, 4), answer);
      await one.waitsForLog(call);
      expect([messagesOf(call), call.sink.ids, call.sink.state]).toEqual([[...lines(1, 4), answer], [], 'ended']);
      one.setAway(false);
    });

    it('[F09] [P3] sends an error after its time, too, also as the first event', async () => {
      const one = await openAway({ streamAfterMs: 0 }); // a call has its stream at once
      one.setAway(true);
      const call = one.send(1);
      await vi.advanceTimersByTimeAsync(1);
      one.backend.leaves([1], 'server_busy');
      await one.waitsForLog(call);
      const error = expect.objectContaining({ id: 1, error: expect.anything() });
      expect([messagesOf(call), call.sink.ids, call.sink.state]).toEqual([[error], [], 'ended']);
      one.setAway(false);
    });

    it('[P7] does not send an answer again that was stored in time', async () => {
      const one = await openAway();
      const call = one.send(1);
      const answer = { jsonrpc: '2.0', id: 1, result: {} };
      one.backend.says(answer);
      await vi.advanceTimersByTimeAsync(10);
      one.setAway(true);
      one.backend.says(note('later'));
      await vi.advanceTimersByTimeAsync(1_000_000);
      expect(messagesOf(call)).toEqual([answer]);
      one.setAway(false);
    });
  });

  it('[P6] ends once the log refuses, since another instance owns the session', async () => {
    let isFenced = false;
    const one = await open({
      log: (log) => ({
        read: log.read,
        append: async (...of) => (isFenced ? { outcome: 'fenced' } : log.append(...of)),
      }),
    });
    isFenced = true;
    one.backend.says(...lines(0, 3));
    one.backend.says(...lines(3, 6));
    expect(await one.telemetry.ends.next()).toBe('moved');
    await one.session.end('deleted');
    expect(one.telemetry.ends.items).toEqual(['moved']);
  });
});
