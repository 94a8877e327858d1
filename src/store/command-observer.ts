import type { StoreUnavailable } from './store-unavailable.ts';

/** Receives the outcome of each command to a store outside this process. */
export interface CommandObserver {
  /** @param tookMs in milliseconds */
  answered(tookMs: number): void;
  failed(reason: StoreUnavailable['reason']): void;
}
