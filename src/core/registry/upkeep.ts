import type { Store } from '../store/store.ts';
import type { StoreEvent } from '../store/store-events.ts';
import { contain } from '../util/boundary.ts';
import type { Emit } from '../util/telemetry/emit.ts';
import { afterCatchUp } from '../util/timing/time-limit.ts';

/** How often each session is renewed within the life of a record. */
const renewalsPerLife = 4;

/**
 * Keeps the records of this instance's sessions from expiring. Each session is renewed once in every round. A round is
 * spread over its whole time, so that many sessions make no burst that delays calls.
 */
export class RecordRenewal {
  /** How long a round takes, in milliseconds. Two renewals of a session are at most twice as far apart. */
  readonly everyMs: number;
  readonly #store: Store;
  readonly #emit: Emit<StoreEvent>;
  /** The sessions of this round that are not renewed yet, the next one last. */
  #unrenewed: string[] = [];
  #roundSize = 0;
  #roundStartedAt = performance.now();

  constructor(store: Store, recordTtlMs: number, emit: Emit<StoreEvent>) {
    this.#store = store;
    this.#emit = emit;
    this.everyMs = recordTtlMs / renewalsPerLife;
  }

  /**
   * Renews the sessions that are due. The caller calls this several times in a round.
   * @param sessions by key; a session that has ended since the round began is skipped
   */
  renewDue(sessions: ReadonlyMap<string, unknown>): void {
    const now = performance.now();
    const share = Math.min(1, (now - this.#roundStartedAt) / this.everyMs);
    const notDueCount = Math.floor(this.#roundSize * (1 - share));
    const due = this.#unrenewed.splice(notDueCount).filter((key) => sessions.has(key));
    if (due.length > 0)
      this.#store.sessions.renew(due).catch((cause: unknown) => this.#emit({ type: 'store-failed', cause }));
    if (share < 1) return;
    this.#unrenewed = [...sessions.keys()];
    this.#roundSize = this.#unrenewed.length;
    this.#roundStartedAt = now;
  }
}

/** The longest interval between two sweeps. */
const maxEveryMs = 30_000;

/**
 * Looks for overdue sessions again and again. One timer serves all sessions, and it does not keep the process alive.
 */
export class Sweep {
  readonly #run: () => void;
  #everyMs = maxEveryMs;
  #timer: NodeJS.Timeout;

  constructor(run: () => void) {
    this.#run = () => contain('background', run);
    this.#timer = setInterval(afterCatchUp(this.#run, maxEveryMs), maxEveryMs).unref();
  }

  /** Makes sure that anything due after `ms` is noticed at most a quarter of `ms` later. */
  notice(ms = Number.POSITIVE_INFINITY): void {
    const everyMs = Math.ceil(ms / 4);
    if (everyMs >= this.#everyMs) return;
    clearInterval(this.#timer);
    this.#everyMs = everyMs;
    this.#timer = setInterval(afterCatchUp(this.#run, everyMs), everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
