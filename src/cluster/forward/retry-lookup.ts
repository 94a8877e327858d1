import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../../protocol/faults.ts';
import type { ClientReply } from './client-reply.ts';
import type { ForwardedRequest } from './forwarded-request.ts';

/** What asking again and again needs. */
export interface RetryLookupOptions {
  /** How long a POST may wait in all before somebody is asked, in milliseconds. */
  readonly waitMs: number;
  /** True once the instance has stopped. */
  isClosed(): boolean;
}

/** A fault, which may be `isPassing`: see `Whereabouts`. */
interface Refused {
  readonly fault: Reason;
  readonly isPassing?: true;
}

/** The pauses between questions that could not be answered yet. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/**
 * Asks until there is an answer: for a POST as long as it may wait, for a GET for ever (P7).
 * @returns undefined if the reply was answered here, with the fault that was said or that none was known in time, or if it
 *   was answered elsewhere meanwhile
 */
export async function retryLookup<T extends object | string>(
  ask: () => Promise<T | Refused | 'later'>,
  exchange: ForwardedRequest,
  reply: ClientReply,
  { waitMs, isClosed }: RetryLookupOptions,
): Promise<T | undefined> {
  for (let pauseMs = firstPauseMs; !reply.isDone; pauseMs = Math.min(1.5 * pauseMs, longestPauseMs)) {
    const said = await ask();
    const isRefused = typeof said === 'object' && 'fault' in said;
    const waits = said === 'later' || (isRefused && said.isPassing && !exchange.awaitsAnswer);
    if (!waits) {
      if (!isRefused) return said as T;
      reply.fault(said.fault, exchange.requestId);
      return undefined;
    }
    const isLate = !exchange.listens && performance.now() >= exchange.mayWaitUntil(waitMs);
    if (isLate || isClosed()) exchange.endUnknown();
    else await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { ref: false });
  }
  return undefined;
}
