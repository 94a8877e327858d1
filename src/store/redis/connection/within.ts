import { StoreUnavailable } from '../../store-unavailable.ts';

/** Resolves with the promise, or rejects as unreachable after this time. The promise itself goes on. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable('unreachable')), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
