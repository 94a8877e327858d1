import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';

/** Returns the ids of the requests that the responses among these messages answer. */
export const answeredIn = (messages: readonly Message[]): readonly RequestId[] =>
  messages.flatMap(({ kind, id }) => (kind === 'response' && id != null ? [id] : []));

/** Returns the id of a message that is a request, in a list; an empty list for any other message. */
export const requestIdsOf = ({ kind, id }: Message): readonly RequestId[] =>
  kind === 'request' && id != null ? [id] : [];
