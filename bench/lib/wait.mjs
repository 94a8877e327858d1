import { setTimeout as sleep } from 'node:timers/promises';

/** True as soon as `isDone()` is; false if it is not within `ms`. */
export async function within(ms, isDone) {
  const until = performance.now() + ms;
  while (!isDone()) {
    if (performance.now() > until) return false;
    await sleep(10);
  }
  return true;
}
