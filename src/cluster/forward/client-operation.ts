import type { RequestId } from '../../protocol/faults.ts';
import { noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type EventId, formatEventId } from '../../protocol/wire/event-id.ts';
import type { ClientPost } from '../../session/session-handle.ts';
import type { ForwardedContext, MessageToOwner } from '../link/peer-messages.ts';
import type { ClientReply } from './client-reply.ts';

/** What a client wants of a session that another instance may hold. */
export type ClientOperation =
  | ({ readonly kind: 'post' } & ClientPost)
  | { readonly kind: 'listen'; readonly after: EventId | undefined }
  | { readonly kind: 'remove' };

/** How it is asked for. */
export interface ForwardAttempt {
  readonly n: number;
  readonly key: string;
  /** The names under which it was asked for before, oldest first. */
  readonly previousIds: readonly string[];
  readonly reply: ClientReply;
}

/** The requests that are to be answered. */
export const operationRequestIds = (wanted: ClientOperation): readonly RequestId[] =>
  wanted.kind !== 'post'
    ? []
    : wanted.messages.filter(({ kind }) => kind === 'request').map(({ id }) => id as RequestId);

/** An owner is told no more of the names under which it was asked before. */
export const maxPreviousIds = 10;

/** The requests have a member of their own: instances before they had names in event ids read the place alone. */
function placeIn(after: EventId | undefined): { readonly after?: string; readonly requests?: string } {
  if (after === undefined) return {};
  const { stream, epoch, seq, requests } = after;
  return { after: formatEventId(stream, { epoch, seq }), ...(requests !== undefined && { requests }) };
}

/** The letter that asks an owner. */
export function messageToOwner(
  wanted: ClientOperation,
  { n, key, previousIds: earlier, reply }: ForwardAttempt,
): { readonly letter: MessageToOwner; readonly body: readonly Buffer[] } {
  const brought = broughtBy(reply);
  const { accepts, isContinued: continues, mayHaveRun: again } = reply;
  if (wanted.kind === 'remove') return { letter: { kind: 'remove', n, key, ...brought }, body: [] };
  if (wanted.kind === 'listen') {
    return { letter: { kind: 'listen', n, key, continues, ...placeIn(wanted.after), ...brought }, body: [] };
  }
  const body = wanted.messages.map(({ text }) => text);
  const lengths = body.map(({ length }) => length);
  const { isBatch, group } = wanted;
  const asked = {
    accepts,
    again,
    ...(earlier.length > 0 && { earlier }),
    lengths,
    ...(group && { group }),
    ...brought,
  };
  return { letter: { kind: 'post', n, key, isBatch, ...asked }, body };
}

function broughtBy({ forwarded = noHeaders, scopes, needs, requestId }: ClientReply): ForwardedContext {
  return {
    ...(forwarded !== noHeaders && { forwarded }),
    ...(scopes && { scopes: [...scopes] }),
    ...(needs && { needs }),
    ...(requestId !== undefined && { requestId }),
  };
}
