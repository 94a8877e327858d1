import type { Reason } from '../protocol/faults.ts';
import { type RateLimit, RequestRate } from './rate.ts';

/** What may be in use at once, and how fast; `undefined` for any number. */
export interface AccountLimits {
  /** Of sessions, and of clients that wait for one that they are about to open. */
  readonly sessions?: number | undefined;
  readonly processes?: number | undefined;
  /** Streams and unanswered requests. */
  readonly streams?: number | undefined;
  readonly bytes?: number | undefined;
  readonly requests?: RateLimit | undefined;
  readonly starts?: RateLimit | undefined;
}

/** What a client is told when a limit is reached. */
export type AccountReasons = Readonly<Record<keyof AccountLimits, Reason>>;

/** What one principal, or all together, have in use on this instance. */
export class QuotaAccount {
  sessions = 0;
  /** Clients that listen before they open their session (HTTP+SSE). */
  waiting = 0;
  processes = 0;
  streams = 0;
  bytes = 0;
  /** There may be another one of the same principal by now. */
  isForgotten = false;
  readonly starts: RequestRate;
  readonly #requests: RequestRate;
  readonly #limits: AccountLimits;
  readonly #reasons: AccountReasons;
  readonly #onRequests: (rate: RequestRate) => void;

  /** @param onRequests is told when requests were counted */
  constructor(
    limits: AccountLimits,
    reasons: AccountReasons,
    onRequests: (rate: RequestRate) => void = () => undefined,
  ) {
    this.#limits = limits;
    this.#reasons = reasons;
    this.#onRequests = onRequests;
    this.#requests = new RequestRate(limits.requests);
    this.starts = new RequestRate(limits.starts);
  }

  /** Why there may be no request more with so many bytes. */
  refusesRequest(bytes: number, nowMs: number): Reason | undefined {
    const { bytes: maxBytes } = this.#limits;
    if (maxBytes !== undefined && this.bytes + bytes > maxBytes) return this.#reasons.bytes;
    return this.#requests.hasRoom(nowMs) ? undefined : this.#reasons.requests;
  }

  /** Counts requests. */
  countRequests(count: number, nowMs: number): void {
    this.#requests.use(count, nowMs);
    this.#onRequests(this.#requests);
  }

  /** Why there may be nothing more that is open. */
  get refusesStream(): Reason | undefined {
    const { streams } = this.#limits;
    return streams !== undefined && this.streams >= streams ? this.#reasons.streams : undefined;
  }

  /** Why no further client may wait for a session that it is about to open. */
  get refusesWaiting(): Reason | undefined {
    const { sessions } = this.#limits;
    return sessions !== undefined && this.waiting >= sessions ? this.#reasons.sessions : undefined;
  }

  /** Why there may be no session more, with a process of its own or without. */
  refusesSession(hasProcess: boolean, nowMs: number): Reason | undefined {
    const { sessions } = this.#limits;
    if (sessions !== undefined && this.sessions >= sessions) return this.#reasons.sessions;
    return hasProcess ? this.refusesProcess(nowMs) : undefined;
  }

  /** Why there may be no process more. */
  refusesProcess(nowMs: number): Reason | undefined {
    const { processes } = this.#limits;
    if (processes !== undefined && this.processes >= processes) return this.#reasons.processes;
    return this.starts.hasRoom(nowMs) ? undefined : this.#reasons.starts;
  }

  /** True if nothing would be forgotten with it. */
  isUnused(nowMs: number): boolean {
    const inUse = this.sessions + this.waiting + this.processes + this.streams + this.bytes;
    return inUse === 0 && this.#requests.isPaid(nowMs) && this.starts.isPaid(nowMs);
  }
}
