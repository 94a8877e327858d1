import { onTestFinished, vi } from 'vitest';
import type { RequestId } from '../../../../src/core/protocol/faults.ts';
import { formatEventId, type LogPosition, parseEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import type { EventBatch } from '../../../../src/core/reply/event-batch.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import type { EventLog, LogLimits } from '../../../../src/core/store/event-log.ts';
import { getStream } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import type { LogState } from '../../../../src/core/store/session-records.ts';
import { aRecord, createLogWriter, epoch as firstEpoch } from '../../../contract/log-writer.ts';
import { createFakeReply, createFakeSink, type FakeReply, type FakeSink } from '../../../support/fake-reply.ts';
import { createCore } from '../core-fixture.ts';
import { silentTelemetry } from '../session-fixture.ts';

const wide: LogLimits = { maxEvents: 100_000, maxBytes: 100_000_000, maxAgeMs: 3_600_000 };

/** Longer than any test. */
export const never = 2 ** 30;

export interface StreamsFixtureOptions {
  readonly limits?: Partial<LogLimits>;
  readonly isPriming?: boolean;
  readonly maxAgeMs?: number;
  readonly slowReaderMs?: number;
  /** The server is paused while a client lags by more than this. */
  readonly maxLag?: { readonly events: number; readonly bytes: number };
  /** The log of an earlier owner: its newest stream, and the requests that its streams answer. */
  readonly earlier?: { readonly newestStream: number; readonly ids: ReadonlyMap<number, readonly RequestId[]> };
  /** How many numbers an earlier owner stored on the GET stream. */
  readonly earlierEvents?: number;
  /** True if this owner took the session over from another one. */
  readonly isTaken?: boolean;
  /** How far an earlier owner delivered the GET stream. */
  readonly getCursor?: LogPosition;
  /** The log of the streams, if it is not the fixture's. */
  readonly log?: EventLog;
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
  maxAgeMs = never,
  slowReaderMs = never,
  maxLag = { events: never, bytes: never },
  earlier,
  earlierEvents = 0,
  isTaken = earlierEvents > 0,
  getCursor,
  log: ownLog,
}: StreamsFixtureOptions = {}) {
  const key = 'k';
  const store = createMemoryStore({ ...wide, ...limits });
  await store.sessions.create(key, aRecord());
  let epoch = firstEpoch;
  if (isTaken) {
    const earlierWriter = createLogWriter(store, key);
    const numbers = Array.from({ length: earlierEvents }, (_, index) => ({ stream: getStream, text: `${index + 1}` }));
    if (numbers.length > 0) await earlierWriter.append(...numbers);
    const taken = await store.sessions.takeOver(key, { owner: aRecord().owner, epoch }, 'instance-2');
    if (taken.outcome !== 'taken') throw new Error(taken.outcome);
    epoch = taken.record.epoch;
  }
  const logged = new Set([formatEventId(getStream, { epoch, seq: 0 })]); // the beginning of the log needs no entry
  const waiting: (() => void)[] = [];
  const pressure: boolean[] = [];
  const failures: unknown[] = [];
  const reported: string[] = [];
  const cursors: (LogPosition | undefined)[] = [];
  let emitted = earlierEvents;
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

  const { session } = createCore({
    limits: { maxAgeMs, slowReaderMs, logLimits: { maxEvents: maxLag.events * 8, maxBytes: maxLag.bytes * 2 } },
    parts: {
      key,
      store: { ...store, log: ownLog ?? log },
      telemetry: { ...silentTelemetry, emit: (event) => void reported.push(event.type) },
    },
    start: { epoch },
  });
  session.protocolVersion = isPriming ? '2025-11-25' : '2025-03-26';
  session.client.getCursor = getCursor;
  if (earlier !== undefined) Object.assign(session, { earlier: logStateOf(earlier) });
  vi.spyOn(session, 'amendRecord').mockImplementation(() => void cursors.push(session.client.getCursor));
  vi.spyOn(session, 'report').mockImplementation((cause) => void failures.push(cause));
  vi.spyOn(session, 'registerRecord').mockResolvedValue('registered');
  const writer = new SessionLog(session);
  writer.open();
  const { streams } = writer;
  streams.onPressure = (isHigh) => void pressure.push(isHigh);
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
    /** Of this owner. */
    epoch,
    pressure,
    failures,
    /** The types of the reported events. */
    reported,
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

const logStateOf = ({ newestStream, ids }: NonNullable<StreamsFixtureOptions['earlier']>): LogState => ({
  tails: new Map(),
  newestStream,
  pending: [...ids].flatMap(([stream, of]) => of.map((id) => ({ stream, id, method: 'tools/call', text: undefined }))),
});

export { getStream };
