import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailable } from './store-unavailable.ts';

/** The pause before a retry. The pause doubles up to the longest one and is spread over its upper half. */
const firstPauseMs = 25;
const longestPauseMs = 1_000;

/**
 * Repeats an operation for as long as the store is unavailable: an outage costs time, nothing else (P7). Rejects with
 * any other error of the operation, and with `StoreUnavailable` once the signal is aborted.
 * @param operation must be safe to repeat, as every operation of `Store` is
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
