import { detachBytes } from '../../util/detached-bytes.ts';
import type { RoundOutcomeStore } from '../shared/outcomes.ts';

/**
 * The limit of the bytes of all outcomes together (P8). Beyond it, the calls that reported least recently are dropped.
 */
export const maxOutcomeBytes = 64 * 1024 * 1024;

/** Outcomes that live at most as long as the process. */
export interface MemoryOutcomes extends RoundOutcomeStore {
  /** Removes expired outcomes. */
  sweep(): void;
  /** The arguments of `keep` that make the same table again, in order. */
  kept(): Iterable<Parameters<RoundOutcomeStore['keep']>>;
  clear(): void;
}

interface CallOutcomes {
  readonly rounds: Map<number, Buffer>;
  bytes: number;
  until: number;
}

/** Makes an empty table. */
export function createMemoryOutcomes(now: () => number): MemoryOutcomes {
  /** Ordered by the last report, the oldest first. */
  const calls = new Map<string, CallOutcomes>();
  let bytes = 0;

  const forget = (call: string): void => {
    bytes -= calls.get(call)?.bytes ?? 0;
    calls.delete(call);
  };
  return {
    async keep(call, round, outcome, ttlMs) {
      const known = calls.get(call);
      const outcomes = known !== undefined && known.until > now() ? known : { rounds: new Map(), bytes: 0, until: 0 };
      forget(call);
      if (!outcomes.rounds.has(round)) {
        outcomes.rounds.set(round, detachBytes(outcome));
        outcomes.bytes += outcome.length;
      }
      outcomes.until = now() + ttlMs;
      calls.set(call, outcomes);
      bytes += outcomes.bytes;
      for (const oldest of calls.keys()) {
        if (bytes <= maxOutcomeBytes) break;
        forget(oldest);
      }
    },
    async find(call, round) {
      const known = calls.get(call);
      return known !== undefined && known.until > now() ? known.rounds.get(round) : undefined;
    },
    sweep() {
      for (const [call, { until }] of calls) if (until <= now()) forget(call);
    },
    *kept() {
      for (const [call, { rounds, until }] of calls)
        for (const [round, outcome] of rounds) yield [call, round, outcome, until - now()];
    },
    clear() {
      calls.clear();
      bytes = 0;
    },
  };
}
