import { onTestFinished } from 'vitest';
import { formatEventId, type LogPosition, parseEventId } from '../../../src/protocol/wire/event-id.ts';
import type { EventBatch } from '../../../src/reply/event-batch.ts';
import { EventWriter } from '../../../src/session/events/event-writer.ts';
import { getStream, Streams, type StreamsOptions } from '../../../src/session/events/streams.ts';
import type { EventLog, LogLimits } from '../../../src/store/event-log.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { aRecord, epoch } from '../../contract/log-writer.ts';
import { createFakeReply, createFakeSink, type FakeReply, type FakeSink } from '../../support/fake-reply.ts';
import { silentTelemetry } from '../session-fixture.ts';

const wide: LogLimits = { maxEvents: 100_000, maxBytes: 100_000_000, maxAgeMs: 3_600_000 };

/** Longer than any test. */
export const never = 2 ** 30;

export interface StreamsFixtureOptions extends Partial<StreamsOptions> {
  readonly limits?: Partial<LogLimits>;
  readonly isPriming?: boolean;
  /** Reads and appends of the log wait until the test lets them go on, one by one. */
  readonly isLate?: boolean;
  /** Each read and append takes as many turns of the event loop as this says, before and after it is done. */
  readonly turnsOf?: () => number;
}

export type StreamsFixture = Awaited<ReturnType<typeof createStreamsFixture>>;

/** The streams of one session on the real memory store, with the real writer; numbers are the messages. */
export async function createStreamsFixture({
  limits = {},
  isPriming = true,
  isLate = false,
  turnsOf = () => 0,
  ...options
}: StreamsFixtureOptions = {}) {
  const key = 'k';
  const store = createMemoryStore({ ...wide, ...limits });
  await store.sessions.create(key, aRecord());
  const logged = new Set([formatEventId(getStream, { epoch, seq: 0 })]); // the beginning of the log needs no entry
  const waiting: (() => void)[] = [];
  const pressure: boolean[] = [];
  const failures: unknown[] = [];
  const cursors: (LogPosition | undefined)[] = [];
  let emitted = 0;
  let underWay = 0;
  let unlogged: string[] = [];

  const turn = async (): Promise<void> => {
    if (isLate) await new Promise<void>((resolve) => void waiting.push(resolve));
    underWay += 1;
    for (let left = turnsOf(); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
  };

  const log: EventLog = {
    async append(...[to, of, tail, events]) {
      await turn();
      const outcome = await store.log.append(to, of, tail, events);
      for (const event of events) logged.add(formatEventId(event.stream, { epoch, seq: event.seq }));
      await turn();
      return outcome;
    },
    async read(...args) {
      await turn();
      const found = await store.log.read(...args);
      await turn();
      return found;
    },
  };

  const writer = new EventWriter({
    log,
    key,
    epoch,
    onStored: (events) => streams.deliver(events),
    register: async () => 'registered',
    onRefused: (outcome, cause) => void failures.push({ outcome, cause }),
  });
  const streams: Streams = new Streams({
    log,
    key,
    name: { server: 's', session: 'k' },
    telemetry: silentTelemetry,
    retryMs: 2_000,
    slowReaderMs: never,
    streamMaxAgeMs: never,
    maxLag: { events: never, bytes: never },
    primes: () => isPriming,
    beginning: { epoch, seq: 0 },
    onGetCursor: (cursor) => void cursors.push(cursor),
    onHistoryLost: () => undefined,
    onFailed: (cause) => void failures.push(cause),
    onPressure: (isHigh) => void pressure.push(isHigh),
    ...options,
  });
  onTestFinished(async () => {
    streams.closeAll();
    await store.close();
  });

  /** P5: an id is in the log before it is on the wire. */
  const watch = (sink: FakeSink): FakeSink => {
    const { write } = sink;
    return Object.assign(sink, {
      write(batch: EventBatch): boolean {
        const ids = [...batch.text.toString().matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id);
        unlogged = [...unlogged, ...ids.filter((id) => !logged.has(id.replace(/~.*/, '')))];
        return write(batch);
      },
    });
  };
  const aReply = (): FakeReply => {
    const reply = createFakeReply();
    const { stream } = reply;
    return Object.assign(Object.create(reply, {}), {
      stream: (headers?: Readonly<Record<string, string>>) => watch(stream(headers) as FakeSink),
    });
  };

  const fixture = {
    store,
    streams,
    pressure,
    failures,
    /** How far the GET stream was delivered to listeners that went. */
    cursors,
    /** Ids that were written before they were in the log. */
    get unlogged() {
      return unlogged;
    },
    /** Lets one of the reads and appends that wait go on. */
    release(index = 0): void {
      waiting.splice(index % Math.max(1, waiting.length), 1)[0]?.();
    },
    /** Emits the next numbers on a stream and stores them. Returns them. */
    emit(stream: number, count = 1, last = false): number[] {
      const numbers = Array.from({ length: count }, (_, index) => emitted + index + 1);
      emitted += count;
      for (const number of numbers) writer.add(stream, Buffer.from(`${number}`), last && number === emitted);
      writer.flush();
      return numbers;
    },
    /** Resolves when nothing goes on any more, and lets everything go on that waits. */
    async settle(): Promise<void> {
      do {
        while (waiting.length > 0) fixture.release();
        await new Promise((resolve) => setImmediate(resolve));
      } while (waiting.length + underWay > 0);
    },
    /** Opens the GET stream. */
    get(): FakeSink {
      const reply = aReply();
      streams.listen(reply);
      writer.flush();
      return reply.sink;
    },
    /** Continues a stream. */
    resume(id: string): FakeReply {
      const reply = aReply();
      const parsed = parseEventId(id);
      if (parsed === undefined) throw new Error(`no event id: ${id}`);
      void streams.resume(reply, parsed);
      return reply;
    },
    /** Opens the stream of a POST. */
    open(ids: readonly (string | number)[] = ['r']): { stream: number; sink: FakeSink } {
      const sink = watch(createFakeSink());
      return { stream: streams.open(sink, ids), sink };
    },
  };
  return fixture;
}

export { getStream };
