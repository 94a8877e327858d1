/** In place of `node:timers/promises`: every pause is as short as a timer can be, and ends with its signal as well. */
export function setTimeout<T>(_ms: number, value?: T, { signal }: { readonly signal?: AbortSignal } = {}) {
  return new Promise<T | undefined>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    }, 1);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
