import { setTimeout as delay } from 'node:timers/promises';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { faultAnswer } from '../../reply/reply.ts';
import { backoff } from '../../util/timing/backoff.ts';
import type { ClientReply } from './client-reply.ts';

/** Options of `retryLookup`. */
export interface RetryLookupOptions {
  /** How long a POST may wait in total for an owner, in milliseconds. */
  readonly waitMs: number;
  /** True once the instance has stopped. */
  isClosed(): boolean;
}

/** The request that waits. `ForwardedRequest` implements it. */
interface WaitingRequest {
  readonly awaitsAnswer: boolean;
  readonly listens: boolean;
  readonly requestId: RequestId | null;
  mayWaitUntil(waitMs: number): number;
  endUnknown(): void;
}

/** A fault, which may be `isPassing`: see `SessionLocation`. */
interface Refusal {
  readonly fault: Reason;
  readonly isPassing?: true | 'soon';
}

/** The pauses between lookups that could not be answered yet, and between requests to an owner out of reach. */
export const pauseAfter = backoff({ firstMs: 50, maxMs: 500, factor: 1.5, spread: [0.75, 1.25] });

/**
 * Repeats a lookup until it has a result: for a POST as long as it may wait, for a GET for ever (P7).
 * @returns undefined if the reply was answered, here or elsewhere
 */
export async function retryLookup<T extends object | string>(
  find: () => Promise<T | Refusal | 'later'>,
  request: WaitingRequest,
  reply: ClientReply,
  { waitMs, isClosed }: RetryLookupOptions,
): Promise<T | undefined> {
  for (let lookups = 0; !reply.isDone; lookups += 1) {
    const result = await find();
    const isRefused = typeof result === 'object' && 'fault' in result;
    const passes = isRefused && (result.isPassing === 'soon' || (result.isPassing && !request.awaitsAnswer));
    const isLate = isClosed() || (!request.listens && performance.now() >= request.mayWaitUntil(waitMs));
    if (isRefused ? !passes || isLate : result !== 'later') {
      if (!isRefused) return result as T;
      reply.answer(faultAnswer(result.fault, request.requestId));
      return undefined;
    }
    if (isLate) request.endUnknown();
    else await delay(pauseAfter(lookups), undefined, { ref: false });
  }
  return undefined;
}
