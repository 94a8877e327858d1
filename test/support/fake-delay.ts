/**
 * In place of `node:timers/promises`, which `vi.useFakeTimers` does not reach: pauses end when the test's clock says so.
 * Use: `vi.mock('node:timers/promises', () => import('../support/fake-delay.ts'))`.
 */
export function setTimeout<T>(ms: number, value?: T, { signal }: { readonly signal?: AbortSignal } = {}) {
  return new Promise<T | undefined>((resolve, reject) => {
    const timer = globalThis.setTimeout(() => resolve(value), ms);
    const abort = (): void => {
      clearTimeout(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
