import { type EventId, formatEventId } from '../../protocol/event-id.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/forwarded-headers.ts';
import type { Accepts } from '../../protocol/media-types.ts';
import type { Post } from '../session-handle.ts';
import type { ToOwner } from './letters.ts';

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
  /** What the request brings for the server. */
  readonly forwarded: ForwardedHeaders | undefined;
}

/** The requests that are to be answered. */
export const requestIds = (wanted: Wanted): readonly RequestId[] =>
  wanted.kind !== 'post'
    ? []
    : wanted.messages.filter(({ kind }) => kind === 'request').map(({ id }) => id as RequestId);

/** The letter that asks an owner. */
export function letterOf(
  wanted: Wanted,
  { n, key, accepts, continues, again, forwarded = noHeaders }: Asking,
): { readonly letter: ToOwner; readonly body: readonly Buffer[] } {
  const brought = forwarded === noHeaders ? undefined : { forwarded };
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
