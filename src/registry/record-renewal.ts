import type { SessionObserver } from '../session/session-observer.ts';
import type { Store } from '../store/store.ts';

/** The store is told that the sessions here go on so often within the life of a record. */
const renewalsPerLife = 4;

/**
 * Keeps the records of an instance's sessions from expiring: each is renewed once in every round, and a round is spread over
 * the time until the next one, so that many sessions are no burst that calls have to wait behind.
 */
export class RecordRenewal {
  /** How long a round takes, in milliseconds. Two renewals of a session are at most twice as far apart. */
  readonly everyMs: number;
  readonly #store: Store;
  readonly #observer: SessionObserver;
  /** The sessions of this round that are not renewed yet, the next one last. */
  #waiting: string[] = [];
  #countOfRound = 0;
  #beganAt = performance.now();

  constructor(store: Store, recordTtlMs: number, observer: SessionObserver) {
    this.#store = store;
    this.#observer = observer;
    this.everyMs = recordTtlMs / renewalsPerLife;
  }

  /**
   * Renews those whose turn has come; to be called several times in a round.
   * @param sessions by key; one that has ended since the round began is left alone
   */
  renewDue(sessions: ReadonlyMap<string, unknown>): void {
    const now = performance.now();
    const share = Math.min(1, (now - this.#beganAt) / this.everyMs);
    const mayWait = Math.floor(this.#countOfRound * (1 - share));
    const due = this.#waiting.splice(mayWait).filter((key) => sessions.has(key));
    if (due.length > 0) this.#store.sessions.renew(due).catch((cause: unknown) => this.#observer.clusterFailed(cause));
    if (share < 1) return;
    this.#waiting = [...sessions.keys()];
    this.#countOfRound = this.#waiting.length;
    this.#beganAt = now;
  }
}
