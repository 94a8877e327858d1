import { readCallName } from './call-name.ts';
import { changedMessage } from './changed-message.ts';
import { type Message, memberValue } from './message.ts';

/** A shorter message is kept as it is: shortening it would cost more than it saves. */
const shortBytes = 16 * 1024;

/** A message with only those members that logs and reports name. */
export interface ShortenedMessage extends Message {
  /** The bytes of the whole message. */
  readonly fullBytes: number;
}

/**
 * A message that may be kept until its answer (P8): a large one without its contents. A session can have 256 calls in
 * flight, each with a request of 4 MiB.
 */
export function shortened(message: Message): Message | ShortenedMessage {
  const fullBytes = message.text.length;
  if (fullBytes <= shortBytes) return message;
  const name = readCallName(message);
  const traceparent = memberValue(message, 'meta', 'traceparent');
  const params = { name, ...(typeof traceparent === 'string' && { _meta: { traceparent } }) };
  const text = JSON.stringify({ jsonrpc: '2.0', id: message.id, method: message.method, params });
  return Object.assign(changedMessage(message, Buffer.from(text), {}), { fullBytes });
}
