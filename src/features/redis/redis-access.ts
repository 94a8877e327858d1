import type { LogLimits } from '../../core/store/event-log.ts';
import type { Commands } from './connection/commands.ts';
import type { createKeys } from './keys.ts';
import type { RunScript } from './script.ts';

/** What each part of the store works with. */
export interface RedisAccess {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly keys: ReturnType<typeof createKeys>;
  readonly lifetimes: ReturnType<typeof createLifetimes>;
}

const dayMs = 86_400_000;

/**
 * Derives from the configuration the milliseconds after which Redis drops an unused key. Every key has one of these
 * lifetimes.
 */
export function createLifetimes({ maxAgeMs }: LogLimits, recordTtlMs: number, leaseMs: number) {
  const logMs = Math.ceil(maxAgeMs) + 1_000; // longer than the age, which the scripts check to the millisecond
  return {
    /** The lifetime of a log after its newest event. By then that event is too old. */
    logMs,
    /** The lifetime of a session's other keys, including tombstones. It is never shorter than the log's. */
    recordMs: Math.max(Math.ceil(recordTtlMs), logMs),
    /** The lifetime of the addresses of all instances after one was published. */
    addressesMs: Math.max(leaseMs * 20, 120_000),
    /**
     * The lifetime of the mark of a dead name. It may expire: names are used once, and a dead name has no lease either.
     */
    deadMs: dayMs,
    /** The lifetime of the store generation's name, which each lease renewal renews. */
    storeGenerationMs: 30 * dayMs,
    /** The lifetime of announced changes after the newest one. Subscribers read them at once. */
    changesMs: dayMs / 24,
  };
}
