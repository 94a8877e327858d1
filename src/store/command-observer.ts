import type { StoreUnavailable } from './store-unavailable.ts';

/** Is told how each command to a store outside of this process ends. */
export interface CommandObserver {
  /** @param tookMs in milliseconds */
  answered(tookMs: number): void;
  failed(reason: StoreUnavailable['reason']): void;
}
