import type { Store } from '../store/store.ts';
import type { SessionObserver } from './observer.ts';

/** The store is told that the sessions here go on so often within the life of a record. */
const renewalsPerLife = 4;

/** Keeps the records of an instance's sessions from expiring, in one sweep for all. */
export class Renewal {
  /** How often it is due, in milliseconds. */
  readonly everyMs: number;
  readonly #store: Store;
  readonly #observer: SessionObserver;
  #renewedAt = performance.now();

  constructor(store: Store, recordTtlMs: number, observer: SessionObserver) {
    this.#store = store;
    this.#observer = observer;
    this.everyMs = recordTtlMs / renewalsPerLife;
  }

  renewIfDue(keys: Iterable<string>): void {
    if (performance.now() - this.#renewedAt < this.everyMs) return;
    this.#renewedAt = performance.now();
    this.#store.sessions.renew([...keys]).catch((cause: unknown) => this.#observer.clusterFailed(cause));
  }
}
