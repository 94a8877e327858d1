import type { LogLimits } from '../event-log.ts';

/** After how many milliseconds Redis drops what nobody touches; every key has one of these. */
export interface Lifetimes {
  /** A log's: its newest event is too old by then. */
  readonly logMs: number;
  /** Everything else of a session, tombstones too: never shorter than the log's. */
  readonly recordMs: number;
  /** A mailbox's, from when its instance had a lease last. */
  readonly mailboxMs: number;
  /** Of the mark of a dead name: names are used once, so that the absence of a lease says as much. */
  readonly deadMs: number;
  /** Of the name of this life of the data; renewed with each lease. */
  readonly storeGenerationMs: number;
  /** A shared secret's, from when it was asked for last. */
  readonly secretMs: number;
  /** Of changes, from the newest: who reads them reads at once. */
  readonly changesMs: number;
}

const dayMs = 86_400_000;

/** The lifetimes that follow from what is configured. */
export function createLifetimes({ maxAgeMs }: LogLimits, recordTtlMs: number, leaseMs: number): Lifetimes {
  const logMs = Math.ceil(maxAgeMs) + 1_000; // the age is judged by the millisecond, and not by this
  return {
    logMs,
    recordMs: Math.max(Math.ceil(recordTtlMs), logMs),
    mailboxMs: Math.max(leaseMs * 20, 120_000),
    deadMs: dayMs,
    storeGenerationMs: 30 * dayMs,
    secretMs: 30 * dayMs,
    changesMs: dayMs / 24,
  };
}
