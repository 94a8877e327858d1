import { setTimeout as sleep } from 'node:timers/promises';

/** Whether the promise settles in time; a rejection goes through. Leaves no timer behind. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([
      promise.then(() => true),
      sleep(ms, false, { signal: over.signal }).catch(() => false), // the abort below, after the race is decided
    ]);
  } finally {
    over.abort();
  }
}
