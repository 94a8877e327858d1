import { entryOf, isReason, type Reason } from '../faults.ts';
import { errorCodeIn, scalarAt } from '../json/splice.ts';
import type { Message } from './message.ts';

/** A longer error is none of the gateway's own, and not looked into. */
const maxOwnBytes = 16 * 1024;

/**
 * The reason that an error response of the gateway itself gives, by which it can be said again in another form; undefined for
 * a result, and for what a server said.
 */
export function readGatewayFault({ text, isError }: Message): Reason | undefined {
  if (!isError || text.length > maxOwnBytes) return undefined;
  const reason = scalarAt(text, ['error', 'data', 'reason']);
  if (!isReason(reason)) return undefined;
  const { code, message } = entryOf(reason);
  return errorCodeIn(text) === code && scalarAt(text, ['error', 'message']) === message ? reason : undefined;
}
