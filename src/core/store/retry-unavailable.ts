import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { backoff } from '../util/timing/backoff.ts';
import { StoreUnavailable } from './store-unavailable.ts';

/** The pause before a retry. */
const pauseAfter = backoff({ firstMs: 25, maxMs: 1_000, spread: [0.5, 1] });

/**
 * Repeats an operation for as long as the store is unavailable: an outage costs time, nothing else (P7). Rejects with
 * any other error of the operation, and with `StoreUnavailable` once the signal is aborted.
 * @param operation must be safe to repeat, as every operation of `Store` is
 * @param stop the signal, or a function that makes it. A session has several signals, which it needs only in an outage.
 * @param onFailure called after each attempt that failed
 */
export async function retryWhileUnavailable<T>(
  operation: () => Promise<T>,
  stop: AbortSignal | (() => AbortSignal),
  onFailure?: () => void,
): Promise<T> {
  let signal: AbortSignal | undefined;
  for (let retries = 0; ; retries += 1) {
    try {
      return await operation();
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      if (signal === undefined) {
        signal = typeof stop === 'function' ? stop() : stop;
        // In an outage, all operations of a session wait on one signal. Node.js would take more than ten for a leak, and
        // write a warning into the log.
        setMaxListeners(0, signal);
      }
      if (signal.aborted) throw cause;
      onFailure?.();
      const pause = delay(pauseAfter(retries), undefined, { signal, ref: false });
      await pause.catch(() => Promise.reject(cause));
    }
  }
}
