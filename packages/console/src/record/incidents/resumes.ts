import type { ResumeOutcome } from '../../host.ts';
import { RecentSum } from './recent-sum.ts';

/** The streams that clients lost and resumed in the last five minutes. */
export interface RecentResumes {
  /** Streams that continued, without a lost event. */
  readonly resumed: number;
  /** Streams that did not continue, or that have a gap. */
  readonly broken: number;
  /** The last one of all; undefined if there was none. `at` is in milliseconds since 1970. */
  readonly last:
    | {
        readonly server: string;
        readonly session: string | undefined;
        readonly at: number;
        readonly isBroken: boolean;
      }
    | undefined;
}

/** Counts the streams that clients resumed. A stream that had ended without further events is not counted. */
export class Resumes {
  readonly #resumed: RecentSum;
  readonly #broken: RecentSum;
  #last: RecentResumes['last'];

  /** @param now a monotonic clock, in milliseconds */
  constructor(now?: () => number) {
    this.#resumed = new RecentSum(now);
    this.#broken = new RecentSum(now);
  }

  add(server: string, session: string | undefined, outcome: ResumeOutcome): void {
    if (outcome === 'complete') return;
    const isBroken = outcome !== 'resumed';
    (isBroken ? this.#broken : this.#resumed).add();
    this.#last = { server, session, at: Date.now(), isBroken };
  }

  get recent(): RecentResumes {
    return { resumed: this.#resumed.value, broken: this.#broken.value, last: this.#last };
  }
}
