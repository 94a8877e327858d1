import type { SessionObserver } from '../session/session-observer.ts';
import type { Store } from '../store/store.ts';

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
  readonly #observer: SessionObserver;
  /** The sessions of this round that are not renewed yet, the next one last. */
  #unrenewed: string[] = [];
  #roundSize = 0;
  #roundStartedAt = performance.now();

  constructor(store: Store, recordTtlMs: number, observer: SessionObserver) {
    this.#store = store;
    this.#observer = observer;
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
    if (due.length > 0) this.#store.sessions.renew(due).catch((cause: unknown) => this.#observer.clusterFailed(cause));
    if (share < 1) return;
    this.#unrenewed = [...sessions.keys()];
    this.#roundSize = this.#unrenewed.length;
    this.#roundStartedAt = now;
  }
}
