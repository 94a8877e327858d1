import type { RequestId } from '../../protocol/faults.ts';
import { type Message, readBody } from '../../protocol/message.ts';

/** The messages in a text, which can be a batch; none if it is something else. */
export function messagesIn(text: Uint8Array): readonly Message[] {
  const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const read = readBody(bytes, Number.POSITIVE_INFINITY);
  if (!read.ok) return [];
  return read.messages.flatMap((each) => (each.ok ? [each.message] : []));
}

/** The ids of the requests, or of the responses, among messages. */
export function idsOf(messages: readonly Message[], kind: 'request' | 'response'): readonly RequestId[] {
  return messages.flatMap(({ kind: its, id }) => (its === kind && id != null ? [id] : []));
}

/** The data of a `message` event as the message that it is: several lines of `data:` are one text. */
export const messageOf = (data: string): Buffer => Buffer.from(data.replaceAll('\n', ' '));
