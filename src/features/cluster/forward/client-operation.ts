import type { RequestId } from '../../../core/protocol/faults.ts';
import { noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { textOfBatch } from '../../../core/protocol/message/message.ts';
import { type EventId, formatEventId } from '../../../core/protocol/wire/event-id.ts';
import type { RemoteOpening } from '../../../core/registry/session-cluster.ts';
import type { EveryFact, RequestFacts } from '../../../core/reply/reply.ts';
import type { ClientPost } from '../../../core/session/session-handle.ts';
import type { PeerRequest } from '../peers/peer-request.ts';
import type { ClientReply } from './client-reply.ts';

/** An operation that a client requests on a session that another instance may own. */
export type ClientOperation =
  | ({ readonly kind: 'post'; readonly opens?: RemoteOpening } & ClientPost)
  | { readonly kind: 'listen'; readonly after: EventId | undefined }
  | { readonly kind: 'remove' };

/** The ids of the requests that need an answer. */
export const operationRequestIds = (operation: ClientOperation): readonly RequestId[] =>
  operation.kind !== 'post'
    ? []
    : operation.messages.filter(({ kind }) => kind === 'request').map(({ id }) => id as RequestId);

/**
 * Makes the request that asks an owner to run the operation.
 * @param adopts see `PeerRequest`
 */
export function peerRequestOf(
  key: string,
  operation: ClientOperation,
  reply: ClientReply,
  adopts: boolean,
): PeerRequest {
  const context = { key, request: factsToSend(reply.request), adopts: adopts || undefined };
  switch (operation.kind) {
    case 'remove':
      return { kind: 'remove', ...context };
    case 'listen': {
      const after = operation.after && formatEventId(operation.after.stream, operation.after);
      return { kind: 'listen', continues: reply.isContinued || undefined, after, ...context };
    }
    case 'post': {
      const { isBatch, group, opens } = operation;
      const again = reply.mayHaveRun || undefined;
      return { kind: 'post', isBatch: isBatch || undefined, again, group, opens, ...context };
    }
  }
}

/** The body of a POST: the one message, or an array. A post of a group may have several, or none. */
export function bodyOf(operation: ClientOperation): Buffer | undefined {
  if (operation.kind !== 'post') return undefined;
  const { messages, isBatch } = operation;
  if (!isBatch && messages.length <= 1) return messages[0]?.text;
  return textOfBatch(messages.map(({ text }) => text));
}

/**
 * The facts of a client's request for its owner: all but those that mean something only at this instance. A new fact that
 * is missing here does not compile.
 */
function factsToSend({ accepts, forwarded = noHeaders, requestId }: RequestFacts): RequestFacts {
  const sent: Omit<EveryFact, 'receivedAt'> = {
    accepts,
    forwarded: forwarded === noHeaders ? undefined : forwarded,
    requestId,
  };
  return sent as RequestFacts;
}
