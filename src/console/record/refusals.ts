import { entryOf, type Reason } from '../../protocol/faults.ts';
import { RecentSum } from './recent-sum.ts';

/** The requests that were refused in the last five minutes. */
export interface RecentRefusals {
  readonly count: number;
  /** The last refusal of all; undefined if there was none. `at` is in milliseconds since 1970. */
  readonly last: { readonly server: string; readonly reason: Reason; readonly at: number } | undefined;
}

/** A client that is not admitted or exceeds a quota is refused. Other faults say nothing about who may do what. */
const refusedStatuses: ReadonlySet<number> = new Set([401, 403, 429]);

const isRefusal = (reason: Reason): boolean =>
  reason === 'too_many_sessions' || refusedStatuses.has(entryOf(reason).status);

/** Counts the requests that the gateway refused because of their sender. */
export class Refusals {
  readonly #sum: RecentSum;
  #last: RecentRefusals['last'];

  /** @param now a monotonic clock, in milliseconds */
  constructor(now?: () => number) {
    this.#sum = new RecentSum(now);
  }

  add(server: string, reason: Reason): void {
    if (!isRefusal(reason)) return;
    this.#sum.add();
    this.#last = { server, reason, at: Date.now() };
  }

  get recent(): RecentRefusals {
    return { count: this.#sum.value, last: this.#last };
  }
}
