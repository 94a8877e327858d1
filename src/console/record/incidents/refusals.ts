import type { RefusalDetail } from '../../../auth/identity.ts';
import { entryOf, type Reason } from '../../../protocol/faults.ts';
import { RecentSum } from './recent-sum.ts';

/** The requests that were refused in the last five minutes. */
export interface RecentRefusals {
  readonly count: number;
  /** The number for each reason, most frequent first. */
  readonly reasons: readonly { readonly reason: Reason; readonly count: number }[];
  /** The last refusal of all; undefined if there was none. `at` is in milliseconds since 1970. */
  readonly last:
    | { readonly server: string; readonly reason: Reason; readonly at: number; readonly detail?: string | undefined }
    | undefined;
}

/** A client that is not admitted or exceeds a quota is refused. Other faults say nothing about who may do what. */
const refusedStatuses: ReadonlySet<number> = new Set([401, 403, 429]);

/** True if this reason refuses a request because of its sender. */
export const refusesSender = (reason: Reason): boolean =>
  reason === 'too_many_sessions' || refusedStatuses.has(entryOf(reason).status);

/** Describes why a sender was refused: `unknown key`, `Host: evil.example`. It contains no secret (`RefusalDetail`). */
export const describeRefusal = ({ why, seen }: RefusalDetail): string =>
  typeof seen === 'string' || typeof seen === 'number' ? `${why}: ${seen}` : why;

/** Counts the requests that the gateway refused because of their sender. */
export class Refusals {
  /** By reason. There are few reasons, and no peer chooses them. */
  readonly #sums = new Map<Reason, RecentSum>();
  readonly #now: (() => number) | undefined;
  /** The detail of the sender that was refused last. It is reported before the refusal of the request. */
  #sender: { readonly server: string; readonly reason: Reason; readonly detail: string } | undefined;
  #last: RecentRefusals['last'];

  /** @param now a monotonic clock, in milliseconds */
  constructor(now?: () => number) {
    this.#now = now;
  }

  /** Notes why a sender is refused, for the refusal of its request. */
  describeNext(server: string, reason: Reason, detail: RefusalDetail | undefined): void {
    this.#sender = detail && { server, reason, detail: describeRefusal(detail) };
  }

  add(server: string, reason: Reason): void {
    if (!refusesSender(reason)) return;
    const sum = this.#sums.get(reason) ?? new RecentSum(this.#now);
    this.#sums.set(reason, sum);
    sum.add();
    const isSender = this.#sender?.server === server && this.#sender.reason === reason;
    this.#last = { server, reason, at: Date.now(), ...(isSender && { detail: this.#sender?.detail }) };
    this.#sender = undefined;
  }

  get recent(): RecentRefusals {
    const reasons = Array.from(this.#sums, ([reason, sum]) => ({ reason, count: sum.value }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count);
    return { count: reasons.reduce((total, { count }) => total + count, 0), reasons, last: this.#last };
  }
}
