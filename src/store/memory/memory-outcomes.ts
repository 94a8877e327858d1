import { detachBytes } from '../../util/detached-bytes.ts';
import type { RoundOutcomeStore } from '../shared/outcomes.ts';

/** All outcomes together have no more bytes than this (P8): of more, those that were told first are forgotten. */
export const maxOutcomeBytes = 64 * 1024 * 1024;

/** Outcomes that live as long as the process at most. */
export interface MemoryOutcomes extends RoundOutcomeStore {
  /** Forgets what has had its time. */
  sweep(): void;
  clear(): void;
}

interface OfCall {
  readonly rounds: Map<number, Buffer>;
  bytes: number;
  until: number;
}

/** Makes an empty table. */
export function createMemoryOutcomes(now: () => number): MemoryOutcomes {
  /** The call that was told of last is the last. */
  const calls = new Map<string, OfCall>();
  let bytes = 0;

  const forget = (call: string): void => {
    bytes -= calls.get(call)?.bytes ?? 0;
    calls.delete(call);
  };
  return {
    async keep(call, round, outcome, forMs) {
      const known = calls.get(call);
      const of = known !== undefined && known.until > now() ? known : { rounds: new Map(), bytes: 0, until: 0 };
      forget(call);
      if (!of.rounds.has(round)) {
        of.rounds.set(round, detachBytes(outcome));
        of.bytes += outcome.length;
      }
      of.until = now() + forMs;
      calls.set(call, of);
      bytes += of.bytes;
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
    clear() {
      calls.clear();
      bytes = 0;
    },
  };
}
