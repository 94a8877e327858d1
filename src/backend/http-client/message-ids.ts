import { openRequest } from '../../protocol/answer-ids.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';

/** Returns those of the open requests that the responses among these messages answer. */
export const answeredIn = (messages: readonly Message[], open: { has(id: RequestId): boolean }): readonly RequestId[] =>
  messages.flatMap(({ kind, id }) => (kind === 'response' && id != null ? (openRequest(id, open) ?? []) : []));

/** Returns the id of a message that is a request, in a list; an empty list for any other message. */
export const requestIdsOf = ({ kind, id }: Message): readonly RequestId[] =>
  kind === 'request' && id != null ? [id] : [];
