import { entryOf, faultMessage, isReason, type Reason } from '../faults.ts';
import { errorCodeIn, scalarAt } from '../json.ts';
import { type Message, readGatewayMessage } from './message.ts';

/** Creates the error response for a fault, as a message. The parameters are those of `faultMessage`. */
export const createFaultResponse = (...fault: Parameters<typeof faultMessage>): Message =>
  readGatewayMessage(Buffer.from(faultMessage(...fault)));

/** A longer error does not come from the gateway, and is not read. */
const maxOwnBytes = 16 * 1024;

/**
 * The reason in an error response that the gateway itself made, so that the error can be written in another form.
 * Undefined for a result, and for a server's error.
 */
export function readGatewayFault({ text, isError }: Message): Reason | undefined {
  if (!isError || text.length > maxOwnBytes) return undefined;
  const reason = scalarAt(text, ['error', 'data', 'reason']);
  if (!isReason(reason)) return undefined;
  const { code, message } = entryOf(reason);
  return errorCodeIn(text) === code && scalarAt(text, ['error', 'message']) === message ? reason : undefined;
}
