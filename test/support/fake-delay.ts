/**
 * Replaces `node:timers/promises`, which `vi.useFakeTimers` does not reach: delays end by the clock of the test. Use:
 * `vi.mock('node:timers/promises', () => import('./fake-delay.ts'))`.
 */
export function setTimeout<T>(ms: number, value?: T, { signal }: { readonly signal?: AbortSignal } = {}) {
  return new Promise<T | undefined>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
