import { TimeLimit } from './time-limit.ts';

/**
 * Settles with a promise that settles in time. Otherwise settles with the outcome of `late`: its result or what it
 * throws. The work behind the promise continues. No timer is left behind.
 * @param ms the time limit in milliseconds
 */
export function within<T, L>(promise: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const limit = new TimeLimit(() => {
      try {
        resolve(late());
      } catch (cause) {
        reject(cause);
      }
    }, ms);
    promise.then(resolve, reject).finally(() => limit.clear());
  });
}

/**
 * Resolves to true if the promise resolves in time, and to false if the time is over first. A rejection in time passes
 * through.
 */
export const settlesWithin = (promise: Promise<unknown>, ms: number): Promise<boolean> =>
  within(
    promise.then(() => true),
    ms,
    () => false,
  );
