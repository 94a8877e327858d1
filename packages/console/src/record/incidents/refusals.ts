import type { ConsoleHost, RefusalDetail } from '../../host.ts';
import { RecentSum } from './recent-sum.ts';

/** The last refusal. It has nothing of the sender's credentials. */
export interface LastRefusal {
  readonly server: string;
  readonly reason: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly detail?: string | undefined;
  /** The address of the sender; undefined if it was known as a user, or is gone. */
  readonly address?: string | undefined;
}

/** The requests that were refused in the last five minutes. */
export interface RecentRefusals {
  readonly count: number;
  /** The number for each reason, most frequent first, with the servers that the requests were for. */
  readonly reasons: readonly {
    readonly reason: string;
    readonly count: number;
    readonly servers: readonly string[];
  }[];
  /** The last refusal of all; undefined if there was none. */
  readonly last: LastRefusal | undefined;
}

/** Describes why a sender was refused: `unknown key`, `Host: evil.example`. It contains no secret (`RefusalDetail`). */
export const describeRefusal = ({ why, seen }: RefusalDetail): string =>
  typeof seen === 'string' || typeof seen === 'number' ? `${why}: ${seen}` : why;

/** Counts the requests that the gateway refused because of their sender. */
export class Refusals {
  /** By reason and server. There are few of both, and no peer chooses them. */
  readonly #sums = new Map<string, Map<string, RecentSum>>();
  readonly #host: Pick<ConsoleHost, 'refusesSender'>;
  readonly #now: (() => number) | undefined;
  /** What is known of the sender that was refused last. It is reported before the refusal of the request. */
  #sender: Pick<LastRefusal, 'server' | 'reason' | 'detail' | 'address'> | undefined;
  #last: LastRefusal | undefined;

  /** @param now a monotonic clock, in milliseconds */
  constructor(host: Pick<ConsoleHost, 'refusesSender'>, now?: () => number) {
    this.#host = host;
    this.#now = now;
  }

  /** Notes why a sender is refused, and where it is, for the refusal of its request. */
  describeNext(server: string, reason: string, detail: RefusalDetail | undefined, address?: string): void {
    this.#sender = { server, reason, address, ...(detail && { detail: describeRefusal(detail) }) };
  }

  add(server: string, reason: string): void {
    if (!this.#host.refusesSender(reason)) return;
    const sums = this.#sums.get(reason) ?? new Map<string, RecentSum>();
    this.#sums.set(reason, sums);
    const sum = sums.get(server) ?? new RecentSum(this.#now);
    sums.set(server, sum);
    sum.add();
    const isSender = this.#sender?.server === server && this.#sender.reason === reason;
    this.#last = { ...(isSender && this.#sender), server, reason, at: Date.now() };
    this.#sender = undefined;
  }

  get recent(): RecentRefusals {
    const reasons = Array.from(this.#sums, ([reason, sums]) => {
      const recent = Array.from(sums, ([server, sum]) => ({ server, count: sum.value }))
        .filter(({ count }) => count > 0)
        .sort((a, b) => b.count - a.count);
      return {
        reason,
        count: recent.reduce((total, { count }) => total + count, 0),
        servers: recent.map(({ server }) => server),
      };
    })
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count);
    return { count: reasons.reduce((total, { count }) => total + count, 0), reasons, last: this.#last };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    for (const sums of this.#sums.values()) sums.delete(server);
  }
}
