import { expect } from 'vitest';
import type { LogPosition } from '../../src/core/protocol/wire/event-id.ts';
import type { LogLimits, ReadOutcome } from '../../src/core/store/event-log.ts';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { aRecord, createLogWriter, type LogWriter } from './log-writer.ts';

/** Limits and times of a store, as every implementation takes them. */
export interface StoreLimits extends LogLimits {
  readonly leaseMs: number;
  readonly recordTtlMs: number;
}

/** A store made for one test. */
export interface StoreUnderTest {
  /** Shares no session with a store made before. The suite closes it. */
  readonly store: ClusterStore;
  /** The same data as another instance sees them: a connection of its own, or the store itself. The suite closes it. */
  readonly other: ClusterStore;
  /** Lets time pass for the store. */
  readonly advance: (ms: number) => void | Promise<void>;
  /** False where time passes only by `advance`. */
  readonly isRealTime: boolean;
}

/** Makes a store whose time passes only by `advance`, and whose data no other instance sees. */
export async function createTimedStore(
  create: (now: () => number) => ClusterStore | Promise<ClusterStore>,
): Promise<StoreUnderTest> {
  let nowMs = 0;
  const store = await create(() => nowMs);
  return {
    store,
    other: store,
    isRealTime: false,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

/** How the suite gets its stores. */
export type MakeStore = (limits: StoreLimits) => StoreUnderTest | Promise<StoreUnderTest>;

/** Limits that no test meets by accident. */
const wide: StoreLimits = {
  maxEvents: 1_000,
  maxBytes: 1_000_000,
  maxAgeMs: 3_600_000,
  leaseMs: 60_000,
  recordTtlMs: 3_600_000,
};

export type Fixture = ReturnType<typeof createFixture>;

/** What the tests of the suite stand on. */
export function createFixture(makeStore: MakeStore) {
  const opened: ClusterStore[] = [];

  async function open(limits: Partial<StoreLimits> = {}): Promise<StoreUnderTest> {
    const made = await makeStore({ ...wide, ...limits });
    opened.push(made.store, made.other);
    return made;
  }

  return {
    open,

    /** A store with one session, `s`, and its owner. */
    async openSession(limits: Partial<StoreLimits> = {}) {
      const { store, other, advance, isRealTime } = await open(limits);
      await store.sessions.create('s', aRecord());
      const writer = createLogWriter(store, 's');
      const read = (stream: number, after?: LogPosition, limit = 1_000) => store.log.read('s', stream, after, limit);
      return { store, other, advance, isRealTime, writer, read };
    },

    async closeAll() {
      await Promise.all(opened.splice(0).map((store) => store.close()));
    },
  };
}

/** Appends events to stream 1, one by one. */
export async function appendEach(writer: LogWriter, texts: readonly string[]): Promise<void> {
  for (const text of texts) expect(await writer.append({ stream: 1, text })).toBe('stored');
}

/** The texts of the events of a successful read. */
export function textsOf(found: ReadOutcome): string[] {
  if (found.outcome !== 'ok') throw new Error(`the read answered ${found.outcome}`);
  return found.events.map(({ data }) => data.toString());
}
