/**
 * The error for an operation whose outcome is unknown, since the store did not answer or refused to. The operation may
 * be repeated (docs/design.md, D11).
 *
 * - `unreachable`: there is no connection, or no answer came in time.
 * - `full`: the store is out of memory and refuses writes.
 * - `refused`: the store answered with an error, such as a missing permission. The cause says more and is for logs
 *   only.
 */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly reason: 'unreachable' | 'full' | 'refused';

  constructor(reason: 'unreachable' | 'full' | 'refused', cause?: unknown) {
    super(`the store is ${reason === 'refused' ? 'refusing requests' : reason}`, { cause });
    this.reason = reason;
  }
}

/** Throws the error of a store that did not answer in time. */
export function failUnreachable(): never {
  throw new StoreUnavailable('unreachable');
}

/**
 * Runs an operation of the store. Resolves with false if the store is away, or if the operation failed.
 * @param onFailed is told of any other failure than a store that is away
 */
export async function tryStore(
  operation: () => Promise<unknown>,
  onFailed: (cause: unknown) => void,
): Promise<boolean> {
  try {
    await operation();
    return true;
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) onFailed(cause);
    return false;
  }
}

/** For `catch`: the result where the store is away. Any other failure is thrown again. */
export const ifUnavailable =
  <const T>(otherwise: T) =>
  (cause: unknown): T => {
    if (cause instanceof StoreUnavailable) return otherwise;
    throw cause;
  };
