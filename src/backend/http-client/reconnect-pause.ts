import { setTimeout as sleep } from 'node:timers/promises';
import { connectErrorCode } from '../connect-failure.ts';

/** So long a server may be away until a request is given up that it has not taken, or whose answer broke. */
export const maxUnreachableMs = 15_000;

const firstPauseMs = 250;
/** A server that names no pause at all must not be asked in a loop. */
const minPauseMs = 50;
const maxPauseMs = 5_000;
/** A server can ask for a longer pause than ours, up to this. */
const maxAskedMs = 60_000;

/**
 * Waits before a connection is made again: as long as the server asked for (`retry:`), doubled with each failure in a row,
 * a bit at random, so that many clients of a server that was away do not all come back in one moment.
 * @param leftMs a pause ends with the time that there is for all attempts: the last attempt is made then
 * @returns false if the signal was aborted meanwhile
 */
export async function pauseBeforeReconnect(
  failures: number,
  {
    askedMs = firstPauseMs,
    leftMs = Number.POSITIVE_INFINITY,
    signal,
  }: { readonly askedMs?: number | undefined; readonly leftMs?: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const firstMs = Math.min(Math.max(askedMs, minPauseMs), maxAskedMs);
  const pauseMs = Math.max(firstMs, Math.min(firstMs * 2 ** failures, maxPauseMs));
  try {
    await sleep(Math.min(pauseMs * (1 + Math.random() / 4), Math.max(0, leftMs)), undefined, { signal });
    return true;
  } catch {
    return false; // the only rejection is the abort
  }
}

const unsent: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'],
]);

/** True if no connection came about, so that the server has not seen anything of the request. */
export const isUnsentAfter = (cause: unknown): boolean => unsent.has(connectErrorCode(cause));
