import { type EventId, formatEventId } from '../../protocol/event-id.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { noHeaders } from '../../protocol/forwarded-headers.ts';
import type { Accepts } from '../../protocol/media-types.ts';
import type { Reply } from '../reply.ts';
import type { Post } from '../session-handle.ts';
import type { Brought, ToOwner } from './letters.ts';

/** What a client wants of a session that another instance may hold. */
export type Wanted =
  | ({ readonly kind: 'post' } & Post)
  | { readonly kind: 'listen'; readonly after: EventId | undefined }
  | { readonly kind: 'remove' };

/** How it is asked for. */
export interface Asking {
  readonly n: number;
  readonly key: string;
  readonly accepts: Accepts;
  /** The stream is open already, and the client has an event id of it. */
  readonly continues: boolean;
  /** An earlier owner may have had the request. */
  readonly again: boolean;
  /** Of which it is what the request brings. */
  readonly reply: Pick<Reply, 'forwarded' | 'scopes' | 'needs' | 'requestId'>;
}

/** The requests that are to be answered. */
export const requestIds = (wanted: Wanted): readonly RequestId[] =>
  wanted.kind !== 'post'
    ? []
    : wanted.messages.filter(({ kind }) => kind === 'request').map(({ id }) => id as RequestId);

/** The letter that asks an owner. */
export function letterOf(
  wanted: Wanted,
  { n, key, accepts, continues, again, reply }: Asking,
): { readonly letter: ToOwner; readonly body: readonly Buffer[] } {
  const brought = broughtBy(reply);
  if (wanted.kind === 'remove') return { letter: { kind: 'remove', n, key, ...brought }, body: [] };
  if (wanted.kind === 'listen') {
    const after = wanted.after && formatEventId(wanted.after.stream, wanted.after);
    return {
      letter: { kind: 'listen', n, key, continues, ...(after !== undefined && { after }), ...brought },
      body: [],
    };
  }
  const body = wanted.messages.map(({ text }) => text);
  const lengths = body.map(({ length }) => length);
  const { isBatch, group } = wanted;
  const asked = { accepts, again, lengths, ...(group && { group }), ...brought };
  return { letter: { kind: 'post', n, key, isBatch, ...asked }, body };
}

function broughtBy({ forwarded = noHeaders, scopes, needs, requestId }: Asking['reply']): Brought {
  return {
    ...(forwarded !== noHeaders && { forwarded }),
    ...(scopes && { scopes: [...scopes] }),
    ...(needs && { needs }),
    ...(requestId !== undefined && { requestId }),
  };
}
