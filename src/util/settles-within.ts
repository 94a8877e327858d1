/** Whether the promise settles in time; a rejection goes through. Leaves no timer behind. */
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
