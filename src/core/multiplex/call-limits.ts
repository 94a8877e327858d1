/** A request in flight with its times, on the monotonic clock in milliseconds. */
export interface TimedCall {
  /** The time of sending or of the last progress. */
  activeAt: number;
  /** The time of sending. */
  readonly startedAt: number;
}

/** How long a request may be silent, and how long it may take, in milliseconds. */
export interface CallTimeLimits {
  readonly requestIdleMs: number;
  readonly requestTotalMs: number;
}

/** Why an overdue request is cancelled, for the server. */
export const overdueReason = 'The request took too long.';

/** Returns the calls that were silent or in flight for too long. */
export function overdueOf<C extends TimedCall>(
  calls: Iterable<C>,
  { requestIdleMs, requestTotalMs }: CallTimeLimits,
): C[] {
  const now = performance.now();
  return [...calls].filter((call) => now - call.activeAt >= requestIdleMs || now - call.startedAt >= requestTotalMs);
}
