import type { RequestId } from '../../protocol/faults.ts';
import { type Message, maxServerDepth, readBody } from '../../protocol/message/message.ts';

/** Returns the messages in a text of a server, which can be a batch; none if the text is something else. */
export const messagesIn = (text: Uint8Array): readonly Message[] => read(text, maxServerDepth);

/** Returns the messages in a text for a server; a client may have nested them more deeply. */
export const messagesFor = (text: Uint8Array): readonly Message[] => read(text, Number.POSITIVE_INFINITY);

function read(text: Uint8Array, maxDepth: number): readonly Message[] {
  const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const body = readBody(bytes, maxDepth);
  if (!body.ok) return [];
  return body.messages.flatMap((each) => (each.ok ? [each.message] : []));
}

/** Returns the ids of the requests, or of the responses, among messages. */
export function idsOf(messages: readonly Message[], kind: 'request' | 'response'): readonly RequestId[] {
  return messages.flatMap(({ kind: messageKind, id }) => (messageKind === kind && id != null ? [id] : []));
}
