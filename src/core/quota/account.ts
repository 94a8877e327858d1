import type { Reason } from '../protocol/faults.ts';
import { type RateLimit, RequestRate } from './rate.ts';

/** The limits of resources in use at once, and of rates; `undefined` for no limit. */
export interface AccountLimits {
  /** The limit of sessions, and of clients that wait for a session that they are about to open. */
  readonly sessions?: number | undefined;
  readonly processes?: number | undefined;
  /** Streams and unanswered requests. */
  readonly streams?: number | undefined;
  readonly bytes?: number | undefined;
  readonly requests?: RateLimit | undefined;
  readonly starts?: RateLimit | undefined;
}

/** The fault reason for each limit that is reached. */
export type AccountReasons = Readonly<Record<keyof AccountLimits, Reason>>;

/** Larger requests may use this part of the bytes at most. */
const shareOfLarge = 3 / 4;
const smallBytes = 16 * 1024;

/** The resources that one principal, or all principals together, use on this instance. */
export class QuotaAccount {
  sessions = 0;
  /** Clients that listen before they open their session (HTTP+SSE). */
  waiting = 0;
  processes = 0;
  streams = 0;
  bytes = 0;
  /** True once the account was dropped. The principal may have another one by now. */
  isForgotten = false;
  readonly starts: RequestRate;
  readonly #requests: RequestRate;
  readonly #limits: AccountLimits;
  readonly #reasons: AccountReasons;
  readonly #onRequests: (rate: RequestRate) => void;
  readonly #heldBytes: () => number;

  /**
   * @param onRequests called when requests were counted
   * @param heldBytes the bytes that are held for servers, also of clients that have left
   */
  constructor(
    limits: AccountLimits,
    reasons: AccountReasons,
    onRequests: (rate: RequestRate) => void = () => undefined,
    heldBytes = (): number => 0,
  ) {
    this.#limits = limits;
    this.#reasons = reasons;
    this.#onRequests = onRequests;
    this.#heldBytes = heldBytes;
    this.#requests = new RequestRate(limits.requests);
    this.starts = new RequestRate(limits.starts);
  }

  /** Returns the reason if another request with this number of bytes exceeds a limit. */
  requestRefusal(bytes: number, nowMs: number): Reason | undefined {
    const { bytes: maxBytes } = this.#limits;
    if (maxBytes !== undefined && !this.#hasRoomFor(bytes, maxBytes)) return this.#reasons.bytes;
    return this.#requests.hasRoom(nowMs) ? undefined : this.#reasons.requests;
  }

  /** A few clients with large requests leave the small ones of all others a part. A single request always has room. */
  #hasRoomFor(bytes: number, maxBytes: number): boolean {
    const used = Math.max(this.bytes, this.#heldBytes());
    const available = used === 0 || bytes <= smallBytes ? maxBytes : maxBytes * shareOfLarge;
    return used + bytes <= available;
  }

  /** Counts requests. */
  countRequests(count: number, nowMs: number): void {
    this.#requests.use(count, nowMs);
    this.#onRequests(this.#requests);
  }

  /** The reason if another stream or unanswered request exceeds the limit. */
  get streamRefusal(): Reason | undefined {
    const { streams } = this.#limits;
    return streams !== undefined && this.streams >= streams ? this.#reasons.streams : undefined;
  }

  /** The reason if another client may not wait for a session that it is about to open. */
  get waitingRefusal(): Reason | undefined {
    const { sessions } = this.#limits;
    return sessions !== undefined && this.waiting >= sessions ? this.#reasons.sessions : undefined;
  }

  /** Returns the reason if so many further sessions and processes exceed a limit. */
  refusalOf(newSessions: number, newProcesses: number, nowMs: number): Reason | undefined {
    const { sessions, processes } = this.#limits;
    if (sessions !== undefined && newSessions > 0 && this.sessions >= sessions) return this.#reasons.sessions;
    if (newProcesses === 0) return undefined;
    if (processes !== undefined && this.processes + newProcesses > processes) return this.#reasons.processes;
    return this.starts.hasRoom(nowMs) ? undefined : this.#reasons.starts;
  }

  /**
   * True if nothing is in use and no rate has a debt: the account can be dropped without loss. Only the rate of requests
   * is shared with other instances.
   */
  isUnused(nowMs: number): boolean {
    const inUse = this.sessions + this.waiting + this.processes + this.streams + this.bytes;
    const isPaid = this.#requests.isPaid(nowMs) && this.starts.isPaid(nowMs);
    return inUse === 0 && isPaid && this.#requests.isShared;
  }
}
