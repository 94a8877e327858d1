import type { Reason, RequestId } from '../faults.ts';
import type { ScanLimits } from '../json.ts';
import { namesModernRevision } from '../known-revisions.ts';
import { hasRoomForText, type Message, type ReadBody, readBody, readBodyInTurns } from './message.ts';

/** The messages of one text of a client: of the body of a POST, or of a frame on a WebSocket. */
export interface ReadPost {
  readonly ok: true;
  readonly messages: readonly Message[];
  readonly isBatch: boolean;
  /** The message, if it is of the modern era or claims to be; it is the only one then. */
  readonly modern: Message | undefined;
  /** The `initialize` request among the messages; in a batch it opens no session. */
  readonly initialize: Message | undefined;
  /** The id for an error response: that of the single request, or none. */
  readonly id: RequestId | null;
}

/** The messages of a text, or the reason to refuse it: `id` is that of the request that the error answers. */
export type PostedMessages = ReadPost | { readonly ok: false; readonly reason: Reason; readonly id: RequestId | null };

/**
 * Limits of a text. Each message of a batch takes an entry in the call table. No real message has nearly as many
 * members.
 */
const limits: ScanLimits = { maxBatch: 100, maxMembers: 4096, foldsKeys: true };

const createRefusal = (reason: Reason, id: RequestId | null = null): PostedMessages => ({ ok: false, reason, id });

/**
 * Parses the messages in a text of a client.
 * @param bytes the text without a byte order mark
 * @param version the revision that a header names
 * @returns a promise if this turn of the event loop has no room for the text, which is then read in turns of its own (P8)
 */
export function readMessages(
  bytes: Buffer,
  maxDepth: number,
  version?: string,
): PostedMessages | Promise<PostedMessages> {
  return hasRoomForText(bytes)
    ? toPostedMessages(readBody(bytes, maxDepth, limits), version)
    : readBodyInTurns(bytes, maxDepth, limits).then((body) => toPostedMessages(body, version));
}

function toPostedMessages(body: ReadBody, version: string | undefined): PostedMessages {
  if (!body.ok) return createRefusal(body.reason);
  const messages: Message[] = [];
  for (const read of body.messages) {
    if (!read.ok) return createRefusal(read.reason, body.batch ? null : read.id);
    messages.push(read.message);
  }
  const [first] = messages;
  if (first === undefined) return createRefusal('empty_batch');
  const id = body.batch ? null : requestId(first);
  const claimsEra = namesModernRevision(version) && (body.batch || !isInitialize(first));
  const modern = claimsEra ? first : messages.find(({ isModern }) => isModern);
  if (modern !== undefined && body.batch) return createRefusal('modern_batch');
  const initialize = messages.find(isInitialize);
  return { ok: true, messages, isBatch: body.batch, modern, initialize, id };
}

/**
 * Only the legacy era has `initialize`. A client that falls back to it may still send a header of the modern era. With
 * the `_meta` of that era, `initialize` is a method that the era has removed.
 */
const isInitialize = ({ method, kind }: Message): boolean => method === 'initialize' && kind === 'request';

const requestId = (message: Message): RequestId | null => (message.kind === 'request' ? (message.id ?? null) : null);
