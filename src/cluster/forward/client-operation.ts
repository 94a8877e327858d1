import type { RequestId } from '../../protocol/faults.ts';
import { noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type EventId, formatEventId } from '../../protocol/wire/event-id.ts';
import type { RequestFacts } from '../../reply/reply.ts';
import type { ClientPost } from '../../session/session-handle.ts';
import type { MessageToOwner, RemoteOpening } from '../link/peer-messages.ts';
import type { ClientReply } from './client-reply.ts';

/** An operation that a client requests on a session that another instance may own. */
export type ClientOperation =
  | ({ readonly kind: 'post'; readonly opens?: RemoteOpening } & ClientPost)
  | { readonly kind: 'listen'; readonly after: EventId | undefined }
  | { readonly kind: 'remove' };

/** The context in which an operation is sent to an owner. */
export interface ForwardAttempt {
  readonly n: number;
  readonly key: string;
  /** The ids of the previous attempts, oldest first. */
  readonly previousIds: readonly string[];
  readonly reply: ClientReply;
  /** See `ForwardedContext.adopts`. */
  readonly adopts: boolean;
}

/** The ids of the requests that need an answer. */
export const operationRequestIds = (operation: ClientOperation): readonly RequestId[] =>
  operation.kind !== 'post'
    ? []
    : operation.messages.filter(({ kind }) => kind === 'request').map(({ id }) => id as RequestId);

/** The most ids of previous attempts that an owner is told. */
export const maxPreviousIds = 10;

/**
 * The request ids have a member of their own. Older instances, whose event ids had no request ids, read `after` alone.
 */
function positionMembers(after: EventId | undefined): { readonly after?: string; readonly requests?: string } {
  if (after === undefined) return {};
  const { stream, epoch, seq, requests } = after;
  return { after: formatEventId(stream, { epoch, seq }), ...(requests !== undefined && { requests }) };
}

/** Builds the peer message that asks an owner to run the operation. */
export function messageToOwner(
  operation: ClientOperation,
  { n, key, previousIds, reply, adopts }: ForwardAttempt,
): { readonly message: MessageToOwner; readonly body: readonly Buffer[] } {
  const context = { request: factsToSend(reply.request), ...(adopts && { adopts }) };
  const { isContinued: continues, mayHaveRun: again } = reply;
  const earlier = previousIds.length > 0 && { earlier: previousIds };
  if (operation.kind === 'remove') return { message: { kind: 'remove', n, key, ...context }, body: [] };
  if (operation.kind === 'listen') {
    return {
      message: { kind: 'listen', n, key, continues, ...positionMembers(operation.after), ...earlier, ...context },
      body: [],
    };
  }
  const body = operation.messages.map(({ text }) => text);
  const lengths = body.map(({ length }) => length);
  const { isBatch, group, opens } = operation;
  const head = {
    again,
    ...earlier,
    lengths,
    ...(group && { group }),
    ...(opens && { opens }),
    ...context,
  };
  return { message: { kind: 'post', n, key, isBatch, ...head }, body };
}

/** The facts without those that mean something only here, or nothing. */
function factsToSend({ accepts, forwarded = noHeaders, requestId }: RequestFacts): RequestFacts {
  return { accepts, ...(forwarded !== noHeaders && { forwarded }), ...(requestId !== undefined && { requestId }) };
}
