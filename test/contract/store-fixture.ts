import { expect } from 'vitest';
import type { Position } from '../../src/protocol/event-id.ts';
import type { LogLimits, ReadOutcome, Store } from '../../src/store/store.ts';
import { aRecord, createLogWriter, type LogWriter } from './log-writer.ts';

/** A store made for one test. */
export interface StoreUnderTest {
  /** Shares no session with a store made before. The suite closes it. */
  readonly store: Store;
  /** Lets time pass for the store; absent where it goes by a clock that tests cannot set, which skips the tests of age. */
  readonly advance?: (ms: number) => void | Promise<void>;
}

/** How the suite gets its stores. */
export type MakeStore = (limits: LogLimits) => StoreUnderTest | Promise<StoreUnderTest>;

/** Limits that no test meets by accident. */
const wide: LogLimits = { maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: 3_600_000 };

export type Fixture = ReturnType<typeof createFixture>;

/** What the tests of the suite stand on. */
export function createFixture(makeStore: MakeStore) {
  const opened: Store[] = [];

  async function open(limits: Partial<LogLimits> = {}): Promise<StoreUnderTest> {
    const made = await makeStore({ ...wide, ...limits });
    opened.push(made.store);
    return made;
  }

  return {
    open,

    /** A store with one session, `s`, and its owner. */
    async openSession(limits: Partial<LogLimits> = {}) {
      const { store, advance } = await open(limits);
      await store.sessions.create('s', aRecord());
      const writer = createLogWriter(store, 's');
      const read = (stream: number, after?: Position, limit = 1_000) => store.log.read('s', stream, after, limit);
      return { store, advance, writer, read };
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
