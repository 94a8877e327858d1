import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BackendSupervisor } from '../../../src/session/backend/supervisor.ts';
import type { ServerOutput } from '../../../src/session/events/backpressure.ts';
import { getStream } from '../../../src/session/events/cursor.ts';
import { EventDelivery } from '../../../src/session/events/delivery.ts';
import type { EventLog } from '../../../src/store/event-log.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { aRecord, epoch } from '../../contract/log-writer.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeReply, createFakeSink } from '../../support/fake-reply.ts';
import { createContext } from '../context-fixture.ts';

const never = 2 ** 30;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The way out of one session; each line of the server goes to the GET stream. */
async function createFixture({ log: wrap = (log: EventLog) => log, maxEvents = 80 } = {}) {
  const store = createMemoryStore({ maxEvents, maxBytes: 1_000_000, maxAgeMs: never });
  onTestFinished(() => store.close());
  await store.sessions.create('k', aRecord());
  const told: string[] = [];
  const { context } = createContext({
    limits: { logLimits: { maxEvents, maxBytes: 1_000_000 } },
    parts: { store: { ...store, log: wrap(store.log) } },
    start: { epoch },
  });
  vi.spyOn(context.record, 'register').mockResolvedValue('registered');
  vi.spyOn(context, 'end').mockImplementation((reason) => void told.push(reason));
  vi.spyOn(context, 'report').mockImplementation(() => void told.push('failed'));
  const supervisor = { pause: () => void told.push('pause'), resume: () => void told.push('resume') };
  const outbound: EventDelivery = new EventDelivery(context, supervisor as unknown as BackendSupervisor, {
    receive(output) {
      outbound.add(getStream, Buffer.from('message' in output ? output.message.text : output.state), false);
    },
  });
  const listen = () => {
    const reply = createFakeReply();
    outbound.streams.listen(reply);
    return reply.sink;
  };
  const stored = async (): Promise<number> => {
    const read = await store.log.read('k', getStream, undefined, 100_000);
    return read.outcome === 'ok' ? read.events.length : 0;
  };
  return { outbound, told, listen, stored };
}

const linesOf = (from: number, to: number): ServerOutput[] =>
  Array.from({ length: to - from }, (_, n) => ({ message: asMessage(String(from + n)), relatedRequests: undefined }));
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

describe('event delivery', () => {
  it('[P5] delivers lines to a listener in order, each after it is in the log', async () => {
    let appended = 0;
    const { outbound, listen } = await createFixture({
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
    outbound.open();
    const sink = listen();
    await turn();
    outbound.take(linesOf(0, 30));
    while (sink.messages.length < 30) {
      await turn();
      expect(sink.messages.length).toBeLessThanOrEqual(appended);
    }
    expect(sink.messages).toEqual(numbers(0, 30));
  });

  it('[P5] stores nothing before it is open, and then all earlier lines', async () => {
    const { outbound, stored, listen } = await createFixture();
    outbound.take(linesOf(0, 5));
    await turn();
    expect([await stored(), outbound.hasRoom]).toEqual([0, true]);
    outbound.open();
    const sink = listen();
    await sink.events.next(({ data }) => data === '4');
    expect(sink.messages).toEqual(numbers(0, 5));
  });

  it('[P8] has no room for more than the log may hold before it is open', async () => {
    const { outbound } = await createFixture();
    outbound.take(linesOf(0, 79));
    expect(outbound.hasRoom).toBe(true);
    outbound.take(linesOf(79, 80));
    expect(outbound.hasRoom).toBe(false);
    outbound.open();
    expect(outbound.hasRoom).toBe(true);
  });

  it('[P8] evicts no unsent event of a reading listener in a burst far larger than the log', async () => {
    const { outbound, listen } = await createFixture();
    outbound.open();
    const sink = listen();
    await turn();
    outbound.take(linesOf(0, 5_000));
    await sink.events.next(({ data }) => data === '4999');
    expect(sink.messages).toEqual(numbers(0, 5_000));
  });

  it('[P8] pauses the server at half of the log for a listener who does not read, and loses nothing', async () => {
    const { outbound, told, listen } = await createFixture();
    outbound.open();
    const sink = listen();
    await turn();
    sink.keepsUp = false;
    outbound.take(linesOf(0, 200));
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

  it('[F12] finishes the waiting lines after the server has ended, even if a listener lags', async () => {
    const { outbound, listen, stored } = await createFixture({ maxEvents: 1_000 });
    outbound.open();
    const sink = listen();
    await turn();
    outbound.setPaused(true);
    outbound.take(linesOf(0, 300));
    expect(await stored()).toBe(0);
    outbound.finish();
    await turn();
    expect(await stored()).toBe(300);
    expect(sink.messages).toEqual(numbers(0, 300));
  });

  it('[P9] stores and delivers added events before it closes its connections', async () => {
    const { outbound, listen } = await createFixture();
    outbound.open();
    const sink = listen();
    const other = createFakeSink();
    const stream = outbound.streams.open(other, [1]);
    await turn();
    outbound.add(getStream, Buffer.from('1'), false);
    outbound.add(stream, Buffer.from('2'), false);
    await outbound.close(false);
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
      fixture.outbound.open();
      const sink = createFakeSink();
      const stream = fixture.outbound.streams.open(sink, [1]);
      return { ...fixture, sink, stream, letGoOn };
    }
    it('[F09] [P3] [P5] sends an answer after its time with what is before it, without event ids, while others wait', async () => {
      const { outbound, sink, stream } = await createStuck();
      outbound.add(stream, Buffer.from('1'), false);
      outbound.flush();
      for (const text of ['2', '3']) outbound.add(stream, Buffer.from(text), false);
      outbound.add(stream, Buffer.from('{"id":1,"error":{}}'), true, {
        settles: 1,
        live: Buffer.from('{"id":1,"result":{}}'),
      });
      outbound.flush();
      vi.advanceTimersByTime(900);
      const later = createFakeSink();
      outbound.add(outbound.streams.open(later, [2]), Buffer.from('2'), true, { settles: 2 });
      vi.advanceTimersByTime(100);
      outbound.sendUnstored(1_001);
      expect(sink.messages).toEqual([]);
      outbound.sendUnstored(1_000);
      outbound.sendUnstored(1_000);
      expect([sink.messages, sink.ids, sink.state, later.messages, later.state]).toEqual([
        [1, 2, 3, { id: 1, result: {} }],
        [],
        'ended',
        [],
        'open',
      ]);
    });

    it('[P7] does not send an answer again that was stored in time', async () => {
      const { outbound, sink, stream, letGoOn } = await createStuck();
      outbound.add(stream, Buffer.from('{"id":1,"result":{}}'), true, { settles: 1 });
      outbound.flush();
      letGoOn();
      await sink.events.next();
      vi.advanceTimersByTime(1_000_000);
      outbound.sendUnstored(1_000);
      expect(sink.messages).toEqual([{ id: 1, result: {} }]);
    });

    it('[F09] [P3] delivers an error that cannot be stored, even as the first event, but not one that can', async () => {
      const { outbound, sink, stream, letGoOn } = await createStuck();
      outbound.add(stream, Buffer.from('{"id":1,"error":{}}'), true, { settles: 1 });
      outbound.flush();
      outbound.sendUnlogged(stream, '{"id":1,"error":{}}');
      vi.advanceTimersByTime(999);
      expect(sink.messages).toEqual([]);
      vi.advanceTimersByTime(1);
      expect([sink.messages, sink.ids, sink.state]).toEqual([[{ id: 1, error: {} }], [], 'ended']);
      letGoOn();
      const next = createFakeSink();
      const other = outbound.streams.open(next, [2]);
      outbound.add(other, Buffer.from('{"id":2,"error":{}}'), true, { settles: 2 });
      outbound.flush();
      outbound.sendUnlogged(other, '{"id":2,"error":{}}');
      await next.events.next();
      vi.advanceTimersByTime(10_000);
      expect([next.messages, next.ids.length]).toEqual([[{ id: 2, error: {} }], 1]);
    });
  });

  it('reports once that the log refuses', async () => {
    const { outbound, told } = await createFixture({
      log: (log) => ({ read: log.read, append: async () => ({ outcome: 'fenced' }) }),
    });
    outbound.open();
    outbound.take(linesOf(0, 3));
    outbound.take(linesOf(3, 6));
    await outbound.close(false);
    expect(told).toEqual(['moved']);
  });
});
