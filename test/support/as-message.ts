import { changedMessage } from '../../src/core/protocol/message/changed-message.ts';
import { createMessage, type Message, readOne } from '../../src/core/protocol/message/message.ts';

/** A text as bytes: values as JSON, strings and bytes unchanged. */
export function toText(value: unknown): Buffer {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}

/** A message with this text, for a backend: also where the text is none, since a test may send anything. */
export function asMessage(value: unknown): Message {
  const text = toText(value);
  return readOne(text) ?? changedMessage(createMessage({ method: 'any' }), text, {});
}
