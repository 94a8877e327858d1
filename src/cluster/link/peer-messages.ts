import type { Principal } from '../../protocol/principal.ts';
import type { CompleteAnswer, Headers, JsonAnswer, RequestFacts } from '../../reply/reply.ts';
import type { GroupRequestOptions } from '../../session/session-handle.ts';

/**
 * The messages between instances (docs/decisions/0015). Client requests travel from the ingress to the owner, and
 * replies travel back. `n` names a request at its ingress. A message is the length of its head, a JSON head, and a body
 * of bytes that is passed on unchanged.
 */
export type MessageToOwner =
  /**
   * The messages of a POST; the body has their texts. `again`: an earlier owner may have received them. `earlier`: the
   * ids of the previous attempts (`RequestAttempt`).
   */
  | (ForwardedContext & {
      readonly kind: 'post';
      readonly n: number;
      readonly key: string;
      readonly isBatch: boolean;
      readonly again: boolean;
      readonly earlier?: readonly string[];
      readonly lengths: readonly number[];
      readonly group?: GroupRequestOptions;
      readonly opens?: RemoteOpening;
    })
  /**
   * A GET. `after` and `requests` are its Last-Event-ID, or the position where an earlier owner stopped; then
   * `continues` is true. `earlier`: the ids of the previous attempts, of which nothing reached the client.
   */
  | (ForwardedContext & {
      readonly kind: 'listen';
      readonly n: number;
      readonly key: string;
      readonly after?: string;
      readonly requests?: string;
      readonly earlier?: readonly string[];
      readonly continues: boolean;
    })
  /** A DELETE. */
  | (ForwardedContext & { readonly kind: 'remove'; readonly n: number; readonly key: string })
  /**
   * The client of a request is gone. With `asksAgain`, the client still waits, and a new attempt under another number
   * follows. With `isAnswered`, the client has its answer, so it does not come back: an earlier attempt may have been
   * kept for it.
   */
  | { readonly kind: 'gone'; readonly n: number; readonly asksAgain?: true; readonly isAnswered?: true }
  /** The client has read this many bytes of the request's stream. */
  | { readonly kind: 'read'; readonly n: number; readonly bytes: number };

/**
 * The session that an `initialize` opens. Its id is not told, since a mailbox must not contain it (P12). An instance of
 * an earlier version takes the POST for one of a session that it does not have.
 */
export interface RemoteOpening {
  readonly server: string;
  readonly digest: string;
  readonly principal: Principal;
}

/** The context that a request carries beside its operation; see `Reply`. */
export interface ForwardedContext {
  readonly request: RequestFacts;
  /**
   * Nobody owns the session, and the sender is about to stop: the receiver takes it over first. An instance of an
   * earlier version answers `moved`.
   */
  readonly adopts?: true;
}

export type MessageToIngress =
  /**
   * The owner does not have the session of this request. `isEnding`: it is about to give up the session, or to get it;
   * ask again.
   */
  | { readonly kind: 'moved'; readonly n: number; readonly isEnding?: true }
  | AnswerToIngress
  /** The answer is a stream. */
  | { readonly kind: 'head'; readonly n: number; readonly headers?: Headers }
  /** Bytes of the stream; `at` is the last event id in them. After `isLast`, nothing but `finish` follows. */
  | { readonly kind: 'chunk'; readonly n: number; readonly at?: string; readonly isLast?: true }
  | { readonly kind: 'finish' | 'cut'; readonly n: number };

/** A complete answer. The body has the text of a JSON answer. */
export type AnswerToIngress = (Omit<JsonAnswer, 'text'> | Exclude<CompleteAnswer, JsonAnswer>) & { readonly n: number };

export type PeerMessageHead =
  | MessageToOwner
  | MessageToIngress
  /** Carries nothing but its number, so that a hole before it shows. */
  | { readonly kind: 'hello' }
  /** A part of a large message. The bodies of all parts are joined in order. */
  | { readonly kind: 'part'; readonly index: number; readonly isLast: boolean }
  /** Messages of the receiver were lost, so replies that it waits for may never come. */
  | { readonly kind: 'hole' };

const lengthBytes = 4;
const nothing = Buffer.alloc(0);

/**
 * The version of the messages between instances. It rises with any change that an older instance would misread. The
 * frame never changes: a length, a JSON head with `v`, `kind` and `n`, and a body.
 */
export const peerMessageVersion = 2;

/** How the head of every message of this version begins. */
const headStart = `{"v":${peerMessageVersion},`;
const headStartBytes = Buffer.from(headStart);

/** Encodes a message. The body is copied. */
export function encodePeerMessage(head: PeerMessageHead, ...body: readonly Buffer[]): Buffer {
  const text = headStart + JSON.stringify(head).slice(1);
  const headEnd = lengthBytes + Buffer.byteLength(text);
  const content = Buffer.allocUnsafe(body.reduce((sum, { length }) => sum + length, headEnd));
  content.writeUInt32BE(headEnd - lengthBytes);
  content.write(text, lengthBytes);
  let at = headEnd;
  for (const part of body) at += part.copy(content, at);
  return content;
}

/** A decoded message. */
export interface DecodedPeerMessage {
  readonly head: PeerMessageHead;
  readonly body: Buffer;
  /**
   * False for a message of another version. Only `n` of its head is reliable, and `key` if the message is a request.
   */
  readonly isKnown: boolean;
}

/**
 * Decodes a message. Throws if the content is not a message.
 */
export function decodePeerMessage(content: Buffer): DecodedPeerMessage {
  const end = lengthBytes + content.readUInt32BE(0);
  const body = end < content.length ? content.subarray(end) : nothing;
  const start = lengthBytes + headStartBytes.length;
  // An object without `v` need not be copied, and each call takes two messages.
  if (end > start && content.compare(headStartBytes, 0, headStartBytes.length, lengthBytes, start) === 0)
    return { head: JSON.parse(`{${content.toString('utf8', start, end)}`) as PeerMessageHead, body, isKnown: true };
  const read = JSON.parse(content.toString('utf8', lengthBytes, end)) as PeerMessageHead & { readonly v?: unknown };
  const { v, ...head } = read;
  return { head: head as PeerMessageHead, body, isKnown: v === peerMessageVersion };
}
