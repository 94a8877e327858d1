import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailable } from './store-unavailable.ts';

/** The pause before the store is asked again; it doubles up to the longest, and is spread over its upper half. */
const firstPauseMs = 25;
const longestPauseMs = 1_000;

/**
 * Asks a store again for as long as it is not available: an outage costs time, nothing else (P7). Rejects with what the
 * operation rejects with otherwise, and with `StoreUnavailable` once the signal is aborted.
 * @param operation may be repeated, as all that `Store` offers
 */
export async function retryWhileUnavailable<T>(operation: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await operation();
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable) || signal.aborted) throw cause;
      const pause = delay(pauseMs * (0.5 + Math.random() / 2), undefined, { signal, ref: false });
      await pause.catch(() => Promise.reject(cause));
    }
  }
}
