import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LeaseRenewal } from '../../../core/store/instances.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { type ClusterOptions, reportStoreFault } from '../cluster-parts.ts';

/** The pause between two checks of readiness. */
const checkMs = 50;

/** The pause after a failed call of the store. */
const pauseMs = 100;

/** After a loss of data, owners have a lease plus this time to register their sessions. */
export const settlingMs = 2_000;

/** A failure is reported once it has lasted this long. */
const toleratedMs = 1_000;

/** This instance among the others: its name, its lease, and the loop that renews the lease (docs/design.md, D3). */
export class Lease {
  /** The current term. Each term requires everything owned here to be registered again. 0 before the first lease. */
  term = 0;
  /** True if the store was away since the start. Only then can missing data be data that the store lost. */
  hadBreak = false;
  readonly #options: Pick<ClusterOptions, 'store' | 'limits' | 'telemetry'>;
  readonly #onHeld: () => void;
  readonly #onTerm: () => void;
  #name = newName();
  #isJoined = false;
  #heldUntil = Number.NEGATIVE_INFINITY;
  /** The end of the last lease that was confirmed, also after its loss. */
  #lastEnd = Number.POSITIVE_INFINITY;
  /** The data of the store when the lease was last confirmed. */
  #heldGeneration: string | undefined;
  #settledAt = Number.NEGATIVE_INFINITY;
  /** The last lease had lapsed before this one began, and what it owned is not registered yet. */
  #isLate = false;
  #sentAt = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | undefined;
  #lastRenewal: LeaseRenewal | undefined;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #wake: (() => void) | undefined;
  #loop: Promise<void> | undefined;

  /**
   * @param onHeld the lease is held again after it was in doubt, and no other instance had it: waiting work can go on
   * @param onTerm a new term has begun: everything owned here has to be registered again
   */
  constructor(options: Pick<ClusterOptions, 'store' | 'limits' | 'telemetry'>, onHeld: () => void, onTerm: () => void) {
    this.#options = options;
    this.#onHeld = onHeld;
    this.#onTerm = onTerm;
  }

  /** The name of this instance. After the loss of its lease it takes another name: a name never lives twice. */
  get name(): string {
    return this.#name;
  }

  /**
   * True while no other instance can have declared this one dead. The time counts from when the last confirmed renewal
   * was sent. It is measured on the monotonic clock, which goes on while the process is stopped (P6).
   */
  get isHeld(): boolean {
    return performance.now() < this.#heldUntil - this.#options.limits.leaseMarginMs;
  }

  /** Resolves to true when this instance may open sessions, or to false if it may not in time. */
  async isReady(): Promise<boolean> {
    const deadline = performance.now() + this.#options.limits.storeWaitMs;
    while (!this.isHeld && performance.now() < deadline) await delay(checkMs);
    return this.isHeld;
  }

  /** How long ago the store confirmed that this instance lives. */
  get unconfirmedMs(): number {
    return performance.now() - this.#confirmedAt;
  }

  /** The minimum age of the store's data; 0 if that is not known. */
  get dataAgeMs(): number {
    return this.#lastRenewal === undefined ? 0 : this.#lastRenewal.dataAgeMs + performance.now() - this.#confirmedAt;
  }

  /**
   * The time until this instance may act for sessions that it owned under an earlier lease; 0 if it may now. Usually the
   * store tells at once whether another instance has taken a session over. After a loss of all data it cannot: the other
   * instance has to register first, and has a lease plus `settlingMs` for that. The same holds if the lease was not
   * valid until the data was lost, and only then.
   */
  get unsettledMs(): number {
    return Math.max(0, this.#settledAt - performance.now());
  }

  /** See `Registrant`. What an earlier lease owned is registered without displacing anybody. */
  get displacesUntilMs(): number {
    return this.#isLate ? 0 : (this.#lastRenewal?.leaseEndsMs ?? 0);
  }

  /** What this instance owned under an earlier lease is registered. */
  noteRegistered(): void {
    this.#isLate = false;
  }

  /** Asks the store now, so that the values are no older than this call. */
  async refresh(): Promise<void> {
    await this.#renewing; // its answer may be older than the caller's observation
    await this.#renew();
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** The store answers again. Records and events that it had confirmed may be lost, so a new term begins. */
  noteRecovery(): void {
    this.hadBreak ||= this.term > 0;
    this.#beginTerm();
  }

  #beginTerm(): void {
    if (!this.#isJoined || this.#isClosed) return;
    this.term += 1;
    this.#onTerm();
  }

  /** Gives up the lease. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    if (!this.#isJoined) return;
    await this.#loop;
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    try {
      await this.#options.store.instances.leave(this.#name);
    } catch (cause) {
      // Without the store the lease lapses by itself.
      if (!(cause instanceof StoreUnavailable)) reportStoreFault(this.#options, cause);
    }
  }

  async #run(): Promise<void> {
    const { leaseRenewMs: renewMs } = this.#options.limits;
    let failingSince: number | undefined;
    while (!this.#isClosed) {
      try {
        if (!this.#isJoined) await this.#join();
        else if (performance.now() >= this.#sentAt + renewMs) await this.#renew();
        failingSince = undefined;
        if (this.#isJoined) await this.#pause(Math.max(1, this.#sentAt + renewMs - performance.now()));
      } catch (cause) {
        // A connection that is being made, or made again, is no failure yet.
        failingSince ??= performance.now();
        if (performance.now() - failingSince >= toleratedMs) reportStoreFault(this.#options, cause);
        // A missing permission is not granted within a moment.
        const isRefused = cause instanceof StoreUnavailable && cause.reason === 'refused';
        await this.#pause(isRefused ? renewMs : pauseMs);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, ms).unref();
    });
  }

  async #join(): Promise<void> {
    const sentAt = performance.now();
    this.#name = newName();
    const renewal = await this.#options.store.instances.join(this.#name);
    this.#noteLapse(renewal);
    this.#noteRenewal(renewal, sentAt);
    this.#isJoined = true;
    this.#beginTerm();
  }

  /** Runs one renewal at a time. Never rejects. */
  #renew(): Promise<void> {
    if (!this.#isJoined || this.#isClosed) return Promise.resolve();
    this.#renewing ??= this.#sendRenewal().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #sendRenewal(): Promise<void> {
    const sentAt = performance.now();
    this.#sentAt = sentAt;
    try {
      const generationBefore = this.#lastRenewal?.storeGeneration;
      const renewal = await this.#options.store.instances.renew(this.#name);
      const wasHeld = this.isHeld; // read only now: the lease may have lapsed during the call
      this.#noteRenewal(renewal, sentAt);
      if (!renewal.held) {
        this.#heldUntil = Number.NEGATIVE_INFINITY;
        this.#isJoined = false;
      } else if (renewal.storeGeneration !== generationBefore) this.#beginTerm();
      else if (!wasHeld) this.#onHeld();
    } catch (cause) {
      this.#sentAt = sentAt - this.#options.limits.leaseRenewMs + pauseMs; // retry soon
      reportStoreFault(this.#options, cause);
    }
  }

  #noteRenewal(renewal: LeaseRenewal, sentAt: number): void {
    this.#lastRenewal = renewal;
    this.#confirmedAt = sentAt;
    this.#sentAt = sentAt;
    if (!renewal.held) return;
    this.#heldUntil = sentAt + this.#options.limits.leaseMs;
    this.#lastEnd = this.#heldUntil;
    this.#heldGeneration = renewal.storeGeneration;
  }

  /**
   * A new lease begins. Other instances may have taken sessions over since the end of the last one. If all data were lost
   * afterwards, the store does not know it yet.
   */
  #noteLapse({ storeGeneration, dataAgeMs }: LeaseRenewal): void {
    const { leaseMs, leaseMarginMs: marginMs } = this.#options.limits;
    const now = performance.now();
    const heldUntil = this.#lastEnd - marginMs;
    this.#isLate = heldUntil < now;
    const lostBefore = now - dataAgeMs;
    const isOtherData = this.#heldGeneration !== undefined && storeGeneration !== this.#heldGeneration;
    if (isOtherData && heldUntil < lostBefore) this.#settledAt = lostBefore + leaseMs + settlingMs;
  }
}

const newName = (): string => randomUUID();
