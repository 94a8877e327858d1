/**
 * Resolves to true if the promise resolves in time, and to false if the time is over first. A rejection passes through.
 * No timer is left behind.
 */
export function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    const settled = (settle: () => void): void => {
      clearTimeout(timer);
      settle();
    };
    promise.then(
      () => settled(() => resolve(true)),
      (cause: unknown) => settled(() => reject(cause)),
    );
  });
}
