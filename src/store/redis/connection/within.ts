import { StoreUnavailable } from '../../store-unavailable.ts';

/**
 * Settles with the promise, or rejects as `unreachable` after this time. The operation behind the promise continues.
 */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable('unreachable')), ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
