import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Message, readGatewayMessage } from '../../../../src/core/protocol/message/message.ts';
import { Outbound } from '../../../../src/core/session/outbound/outbound.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import { ServerLink } from '../../../../src/core/session/server/server-link.ts';
import type { EventLog } from '../../../../src/core/store/event-log.ts';
import { getStream } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { aRecord, epoch } from '../../../contract/log-writer.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createFakeReply, createFakeSink } from '../../../support/fake-reply.ts';
import { createCore } from '../core-fixture.ts';

const never = 2 ** 30;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The way out of one session; each line of the server goes to the GET stream. */
async function createFixture({ log: wrap = (log: EventLog) => log, maxEvents = 80 } = {}) {
  const store = createMemoryStore({ maxEvents, maxBytes: 1_000_000, maxAgeMs: never });
  onTestFinished(() => store.close());
  await store.sessions.create('k', aRecord());
  const told: string[] = [];
  const { session } = createCore({
    limits: { logLimits: { maxEvents, maxBytes: 1_000_000 } },
    parts: { store: { ...store, log: wrap(store.log) } },
    start: { epoch },
  });
  vi.spyOn(session, 'registerRecord').mockResolvedValue('registered');
  vi.spyOn(session, 'endFor').mockImplementation((reason) => void told.push(reason));
  vi.spyOn(session, 'report').mockImplementation(() => void told.push('failed'));
  const link = new ServerLink(session);
  vi.spyOn(link, 'pause').mockImplementation(() => void told.push('pause'));
  vi.spyOn(link, 'resume').mockImplementation(() => void told.push('resume'));
  const sessionLog = new SessionLog(session);
  const outbound = new Outbound(session, link, sessionLog);
  const listen = () => {
    const reply = createFakeReply();
    sessionLog.streams.listen(reply);
    return reply.sink;
  };
  const stored = async (): Promise<number> => {
    const read = await store.log.read('k', getStream, undefined, 100_000);
    return read.outcome === 'ok' ? read.events.length : 0;
  };
  return { outbound, log: sessionLog, told, listen, stored };
}

const linesOf = (from: number, to: number): Message[] =>
  Array.from({ length: to - from }, (_, n) => asMessage(String(from + n)));
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

describe('the way from the server to its client', () => {
  it('[P5] delivers lines to a listener in order, each after it is in the log', async () => {
    let appended = 0;
    const { outbound, log, listen } = await createFixture({
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
    log.open();
    const sink = listen();
    await turn();
    outbound.onMessages(linesOf(0, 30));
    while (sink.messages.length < 30) {
      await turn();
      expect(sink.messages.length).toBeLessThanOrEqual(appended);
    }
    expect(sink.messages).toEqual(numbers(0, 30));
  });

  it('[P5] stores nothing before it is open, and then all earlier lines', async () => {
    const { outbound, log, stored, listen } = await createFixture();
    outbound.onMessages(linesOf(0, 5));
    await turn();
    expect([await stored(), log.hasRoom]).toEqual([0, true]);
    log.open();
    const sink = listen();
    await sink.events.next(({ data }) => data === '4');
    expect(sink.messages).toEqual(numbers(0, 5));
  });

  it('[P8] has no room for more than the log may hold before it is open', async () => {
    const { outbound, log } = await createFixture();
    outbound.onMessages(linesOf(0, 79));
    expect(log.hasRoom).toBe(true);
    outbound.onMessages(linesOf(79, 80));
    expect(log.hasRoom).toBe(false);
    log.open();
    expect(log.hasRoom).toBe(true);
  });

  it('[P8] evicts no unsent event of a reading listener in a burst far larger than the log', async () => {
    const { outbound, log, listen } = await createFixture();
    log.open();
    const sink = listen();
    await turn();
    outbound.onMessages(linesOf(0, 5_000));
    await sink.events.next(({ data }) => data === '4999');
    expect(sink.messages).toEqual(numbers(0, 5_000));
  });

  it('[P8] pauses the server at half of the log for a listener who does not read, and loses nothing', async () => {
    const { outbound, log, told, listen } = await createFixture();
    log.open();
    const sink = listen();
    await turn();
    sink.keepsUp = false;
    outbound.onMessages(linesOf(0, 200));
    await turn();
    expect(told.at(-1)).toBe('pause');
    const before = sink.messages.length;
    expect(before).toBeLessThan(80);
    sink.drain();
    await sink.events.next(({ data }) => data === '199');
    expect(sink.messages).toEqual(numbers(0, 200));
    await turn();
    expect(told.at(-1)).toBe('resume');
  });

  it('[P8] handles no line while it is held, pauses the server once, and goes on in order', async () => {
    const { outbound, log, told, stored } = await createFixture({ maxEvents: 1_000 });
    log.open();
    outbound.setHeld(true);
    outbound.onMessages(linesOf(0, 2));
    outbound.onMessages(linesOf(2, 3));
    await turn();
    expect([await stored(), told]).toEqual([0, ['pause']]);
    outbound.setHeld(false);
    await turn();
    expect([await stored(), told]).toEqual([3, ['pause', 'resume']]);
    outbound.setHeld(false);
    expect(told).toHaveLength(2);
  });

  it('[F12] finishes the waiting lines after the server has ended, even if a listener lags', async () => {
    const { outbound, log, listen, stored } = await createFixture({ maxEvents: 1_000 });
    log.open();
    const sink = listen();
    await turn();
    outbound.setHeld(true);
    outbound.onMessages(linesOf(0, 300));
    expect(await stored()).toBe(0);
    outbound.finish();
    await turn();
    expect(await stored()).toBe(300);
    expect(sink.messages).toEqual(numbers(0, 300));
  });

  it('[P9] stores and delivers added events before it closes its connections', async () => {
    const { log, listen } = await createFixture();
    log.open();
    const sink = listen();
    const other = createFakeSink();
    const stream = log.streams.open(other, [1]);
    await turn();
    log.add(getStream, Buffer.from('1'), false);
    log.add(stream, Buffer.from('2'), false);
    await log.close(false);
    expect([sink.messages, sink.state, other.messages, other.state]).toEqual([[1], 'ended', [2], 'ended']);
  });

  describe('while the log accepts nothing', () => {
    /** A log that waits until it is let go on, with a stream for the request 1. */
    async function createStuck() {
      let letGoOn: () => void = () => undefined;
      const waiting = new Promise<void>((resolve) => {
        letGoOn = resolve;
      });
      const fixture = await createFixture({
        log: (log) => ({ read: log.read, append: (...of) => waiting.then(() => log.append(...of)) }),
      });
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
      fixture.log.open();
      const sink = createFakeSink();
      const stream = fixture.log.streams.open(sink, [1]);
      return { ...fixture, sink, stream, letGoOn };
    }
    it('[F09] [P3] delivers an error that cannot be stored, even as the first event, but not one that can', async () => {
      const { log, sink, stream, letGoOn } = await createStuck();
      log.add(stream, Buffer.from('{"id":1,"error":{}}'), true, { settles: 1 });
      log.flush();
      log.sendUnlogged(stream, '{"id":1,"error":{}}');
      vi.advanceTimersByTime(999);
      expect(sink.messages).toEqual([]);
      vi.advanceTimersByTime(1);
      expect([sink.messages, sink.ids, sink.state]).toEqual([[{ id: 1, error: {} }], [], 'ended']);
      letGoOn();
      const next = createFakeSink();
      const other = log.streams.open(next, [2]);
      log.add(other, Buffer.from('{"id":2,"error":{}}'), true, { settles: 2 });
      log.flush();
      log.sendUnlogged(other, '{"id":2,"error":{}}');
      await next.events.next();
      vi.advanceTimersByTime(10_000);
      expect([next.messages, next.ids.length]).toEqual([[{ id: 2, error: {} }], 1]);
    });
  });

  describe('while the store is away', () => {
    /** A log that refuses each append until it is back, with a stream for the request 1. */
    async function createAway() {
      let isAway = true;
      let attempts = 0;
      const fixture = await createFixture({
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
      fixture.log.open();
      const sink = createFakeSink();
      const stream = fixture.log.streams.open(sink, [1]);
      /** Two further attempts have begun, so that one of them has failed. */
      const tried = async (): Promise<void> => {
        const before = attempts;
        while (attempts < before + 2) await turn();
      };
      const setAway = (value: boolean): void => {
        isAway = value;
      };
      return { ...fixture, sink, stream, tried, setAway };
    }

    it('[F09] [P3] [P5] sends an answer after its time with what is before it, without event ids, while others wait', async () => {
      const { log, sink, stream, tried } = await createAway();
      log.add(stream, Buffer.from('1'), false);
      log.flush();
      for (const text of ['2', '3']) log.add(stream, Buffer.from(text), false);
      log.add(stream, Buffer.from('{"id":1,"error":{}}'), true, {
        settles: 1,
        live: readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}')),
      });
      vi.advanceTimersByTime(2_000);
      const later = createFakeSink();
      log.add(log.streams.open(later, [2]), Buffer.from('2'), true, { settles: 2 });
      vi.advanceTimersByTime(999);
      await tried();
      expect(sink.messages).toEqual([]);
      vi.advanceTimersByTime(1);
      await tried();
      await tried();
      expect([sink.messages, sink.ids, sink.state, later.messages, later.state]).toEqual([
        [1, 2, 3, { jsonrpc: '2.0', id: 1, result: {} }],
        [],
        'ended',
        [],
        'open',
      ]);
    });

    it('[P7] does not send an answer again that was stored in time', async () => {
      const { log, sink, stream, tried, setAway } = await createAway();
      setAway(false);
      log.add(stream, Buffer.from('{"id":1,"result":{}}'), true, { settles: 1 });
      log.flush();
      await sink.events.next();
      setAway(true);
      vi.advanceTimersByTime(1_000_000);
      log.add(getStream, Buffer.from('2'), false);
      log.flush();
      await tried();
      expect(sink.messages).toEqual([{ id: 1, result: {} }]);
      setAway(false);
    });
  });

  it('reports once that the log refuses', async () => {
    const { outbound, log, told } = await createFixture({
      log: (log) => ({ read: log.read, append: async () => ({ outcome: 'fenced' }) }),
    });
    log.open();
    outbound.onMessages(linesOf(0, 3));
    outbound.onMessages(linesOf(3, 6));
    await log.close(false);
    expect(told).toEqual(['moved']);
  });
});
