import { entryOf, faultMessage, faultText, isReason, type Reason } from '../faults.ts';
import { errorCodeIn, scalarAt } from '../json.ts';
import { type Message, readGatewayMessage } from './message.ts';

/** Creates the error response for a fault, as a message. The parameters are those of `faultMessage`. */
export const createFaultResponse = (...fault: Parameters<typeof faultMessage>): Message =>
  readGatewayMessage(Buffer.from(faultMessage(...fault)));

/** The error for a server's request that no client answers, so that the server does not wait. */
export const requestRefusal = ({ id = null }: Pick<Message, 'id'>): Message =>
  createFaultResponse('server_request_refused', id);

/** A longer error does not come from the gateway, and is not read. */
const maxOwnBytes = 16 * 1024;

/** A fault of the gateway, and the details in its text. */
export interface GatewayFault {
  readonly reason: Reason;
  readonly data: { readonly why?: string };
}

/**
 * The fault in an error response that the gateway itself made, so that the error can be written in another form.
 * Undefined for a result, and for a server's error.
 */
export function readGatewayFault({ text, isError }: Message): GatewayFault | undefined {
  if (!isError || text.length > maxOwnBytes) return undefined;
  const reason = scalarAt(text, ['error', 'data', 'reason']);
  if (!isReason(reason) || errorCodeIn(text) !== entryOf(reason).code) return undefined;
  const why = scalarAt(text, ['error', 'data', 'why']);
  const data = typeof why === 'string' ? { why } : {};
  return scalarAt(text, ['error', 'message']) === faultText(reason, data) ? { reason, data } : undefined;
}
