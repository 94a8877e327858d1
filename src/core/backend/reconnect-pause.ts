import { setTimeout as sleep } from 'node:timers/promises';
import { errorCodeOf } from '../util/text/error-code.ts';
import { backoff } from '../util/timing/backoff.ts';

/** How long a server may be away. Then a request fails that the server has not accepted, or whose response broke. */
export const maxUnreachableMs = 15_000;

/**
 * The same for a host that refuses the connection: there is no server, and clients should get this reason before their
 * own time limits (docs/decisions/0016).
 */
export const maxRefusedMs = 1_500;

/** True if nothing listens at the address. */
export const isRefusedConnection = (cause: unknown): boolean => errorCodeOf(cause) === 'ECONNREFUSED';

/** How long a request may wait for its server after this failure. */
export const maxWaitAfter = (cause: unknown): number => (isRefusedConnection(cause) ? maxRefusedMs : maxUnreachableMs);

const firstPauseMs = 250;
/** A server that sets a pause of zero must not be asked in a loop. */
const minPauseMs = 50;
const maxPauseMs = 5_000;
/** A server can set a longer pause than ours, up to this. */
const maxRequestedMs = 60_000;

/**
 * Waits before a connection is made again: as long as the server requested (`retry:`), doubled with each failure in a
 * row. The pause is partly random, so that many clients do not all return at one moment.
 * @param leastMs the shortest first pause
 * @param leftMs the time left for all attempts: a longer pause ends with it, and the last attempt is made then
 * @returns false if the signal was aborted meanwhile
 */
export async function pauseBeforeReconnect(
  failures: number,
  {
    requestedMs = firstPauseMs,
    leastMs = minPauseMs,
    leftMs = Number.POSITIVE_INFINITY,
    signal,
  }: {
    readonly requestedMs?: number | undefined;
    readonly leastMs?: number;
    readonly leftMs?: number;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const firstMs = Math.min(Math.max(requestedMs, leastMs, minPauseMs), maxRequestedMs);
  const pauseAfter = backoff({ firstMs, maxMs: Math.max(firstMs, maxPauseMs), spread: [1, 1.25] });
  try {
    await sleep(Math.min(pauseAfter(failures), Math.max(0, leftMs)), undefined, { signal });
    return true;
  } catch {
    return false; // the only rejection is the abort
  }
}

const unsent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** True if no connection was established, so that the server has seen nothing of the request. */
export const isUnsentAfter = (cause: unknown): boolean => unsent.has(errorCodeOf(cause));
