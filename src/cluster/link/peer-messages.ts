import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import type { Headers } from '../../reply/reply.ts';
import type { GroupRequestOptions } from '../../session/session-handle.ts';

/**
 * What instances say to each other (docs/decisions/0015): requests of clients go from the ingress to the owner, replies
 * come back. `n` names a request at its ingress. A letter is a JSON head, its length before it, and a body of bytes that are
 * passed on as they are.
 */
export type MessageToOwner =
  /**
   * Messages of a POST; the body is their texts. `again` if an earlier owner may have had them; `earlier` are the names under
   * which they were asked for before (`Asking`).
   */
  | (ForwardedContext & {
      readonly kind: 'post';
      readonly n: number;
      readonly key: string;
      readonly isBatch: boolean;
      readonly accepts: Accepts;
      readonly again: boolean;
      readonly earlier?: readonly string[];
      readonly lengths: readonly number[];
      readonly group?: GroupRequestOptions;
    })
  /**
   * A GET; `after` and `requests` are its Last-Event-ID, or where an earlier owner's part of it ended: then it `continues`.
   */
  | (ForwardedContext & {
      readonly kind: 'listen';
      readonly n: number;
      readonly key: string;
      readonly after?: string;
      readonly requests?: string;
      readonly continues: boolean;
    })
  /** A DELETE. */
  | (ForwardedContext & { readonly kind: 'remove'; readonly n: number; readonly key: string })
  /** The client of a request is gone, or, with `asksAgain`, has its answer from now on under another number. */
  | { readonly kind: 'gone'; readonly n: number; readonly asksAgain?: true }
  /** The client has taken so many bytes of the request's stream. */
  | { readonly kind: 'read'; readonly n: number; readonly bytes: number };

/** What a request brings beside what it asks for; see `Reply`. */
export interface ForwardedContext {
  readonly forwarded?: ForwardedHeaders;
  readonly scopes?: readonly string[];
  readonly needs?: readonly string[];
  readonly requestId?: string;
}

export type MessageToIngress =
  /** The owner does not have the session of this request. `isEnding`: it is about to give it up, or to get it; ask again. */
  | { readonly kind: 'moved'; readonly n: number; readonly isEnding?: true }
  | { readonly kind: 'json'; readonly n: number; readonly headers?: Headers }
  | { readonly kind: 'accepted' | 'nothing' | 'removed'; readonly n: number }
  | {
      readonly kind: 'fault';
      readonly n: number;
      readonly reason: Reason;
      readonly id: RequestId | null;
      readonly data?: Record<string, unknown>;
    }
  /** The answer is a stream. */
  | { readonly kind: 'head'; readonly n: number; readonly headers?: Headers }
  /** Bytes of the stream; `at` is the last event id in them. */
  | { readonly kind: 'chunk'; readonly n: number; readonly at?: string }
  | { readonly kind: 'finish' | 'cut'; readonly n: number };

export type PeerMessageHead =
  | MessageToOwner
  | MessageToIngress
  /** Says nothing but its number, so that a hole before it shows. */
  | { readonly kind: 'hello' }
  /** A piece of a letter that is too large for one; its body is put behind those of the pieces before it. */
  | { readonly kind: 'part'; readonly index: number; readonly isLast: boolean }
  /** Letters of the receiver's were lost: what it waits for may never come. */
  | { readonly kind: 'hole' };

const lengthBytes = 4;
const nothing = Buffer.alloc(0);

/**
 * The version of what instances say to each other. It goes up with any change that an instance of the version before would take in
 * another sense. The frame stays: a length, a JSON head with `v`, `kind` and `n`, and a body.
 */
export const peerMessageVersion = 1;

/** A letter's content. The body is copied. */
export function encodePeerMessage(head: PeerMessageHead, ...body: readonly Buffer[]): Buffer {
  const text = Buffer.from(`{"v":${peerMessageVersion},${JSON.stringify(head).slice(1)}`);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, ...body]);
}

/** What a letter is read as. */
export interface DecodedPeerMessage {
  readonly head: PeerMessageHead;
  readonly body: Buffer;
  /** False for one of a later version: what its head means is not known, but for `n`, and `key` where it asks for something. */
  readonly isKnown: boolean;
}

/**
 * Reads a letter's content. Before letters had a version, instances wrote them as version 1 has them. Throws at what is no
 * letter.
 */
export function decodePeerMessage(content: Buffer): DecodedPeerMessage {
  const end = lengthBytes + content.readUInt32BE(0);
  const read = JSON.parse(content.toString('utf8', lengthBytes, end)) as PeerMessageHead & { readonly v?: unknown };
  const { v = peerMessageVersion, ...head } = read;
  return {
    head: head as PeerMessageHead,
    body: end < content.length ? content.subarray(end) : nothing,
    isKnown: v === peerMessageVersion,
  };
}
