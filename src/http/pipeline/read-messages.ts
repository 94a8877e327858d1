import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { isJsonContentType } from '../../protocol/http/media-types.ts';
import { headerOf } from '../../protocol/http/request-header.ts';
import type { ScanLimits } from '../../protocol/json/scan.ts';
import { type Message, type ReadBody, readBody, readBodyInTurns } from '../../protocol/message/message.ts';
import { namesModernRevision } from '../../protocol/revisions.ts';
import { contain } from '../../util/boundary.ts';
import { isLarge } from '../../util/large-reads.ts';
import { endAsInternal } from '../respond.ts';
import { recordBodyReceived, recordMessages } from './refused-calls.ts';
import { type RequestBody, readRequestBody } from './request-body.ts';
import { logMessages } from './request-log-fields.ts';

/** The messages of a POST, or the reason to refuse it: `id` is that of the request that the error answers. */
export type PostedMessages =
  | {
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
  | {
      readonly ok: false;
      readonly reason: Reason;
      readonly id: RequestId | null;
      readonly data?: Record<string, unknown>;
    };

/** Size limits of a POST. */
export interface PostLimits {
  readonly maxBodyBytes: number;
  readonly maxDepth: number;
}

/**
 * Limits of a text. Each message of a batch takes an entry in the call table. No real message has nearly as many
 * members.
 */
const limits: ScanLimits = { maxBatch: 100, maxMembers: 4096, foldsKeys: true };

/**
 * Reads the messages of a POST. `done` is called once, unless the client leaves before the end of the body. An
 * exception in `done` ends the request as `internal`.
 * @param isAcceptable false if the client accepts no form of response that exists
 */
export function readPostedMessages(
  outgoing: ServerResponse,
  limits: PostLimits,
  isAcceptable: boolean,
  done: (posted: PostedMessages) => void,
): void {
  const { req: incoming } = outgoing;
  const refusedReason = findHeaderFault(incoming) ?? (isAcceptable ? undefined : 'not_acceptable');
  if (refusedReason !== undefined) return done(createRefusal(refusedReason));
  let id: RequestId | null = null;
  const handlePosted = (posted: PostedMessages): void => {
    id = posted.id;
    if (posted.ok) {
      recordMessages(incoming, posted.messages);
      logMessages(incoming, posted.messages);
    }
    done(posted);
  };
  const handleBody = (body: RequestBody): void | Promise<void> => {
    if (!body.ok) return body.reason === 'aborted' ? undefined : done(createRefusal(body.reason));
    recordBodyReceived(incoming);
    const version = headerOf(incoming, 'mcp-protocol-version');
    const posted = readMessages(withoutBom(body.bytes), limits.maxDepth, version);
    return posted instanceof Promise ? posted.then(handlePosted) : handlePosted(posted);
  };
  readRequestBody(incoming, limits.maxBodyBytes, (body) =>
    contain(
      'request',
      () => handleBody(body),
      () => endAsInternal(outgoing, id),
    ),
  );
}

const createRefusal = (
  reason: Reason,
  id: RequestId | null = null,
  data?: Record<string, unknown>,
): PostedMessages => ({
  ok: false,
  reason,
  id,
  ...(data && { data }),
});

/** Returns the reason to refuse a POST by its headers alone, before its body is read. */
function findHeaderFault({ headers }: IncomingMessage): Reason | undefined {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'encoded_body';
  return isJsonContentType(headers['content-type']) ? undefined : 'bad_content_type';
}

/**
 * Parses the messages in a text of a client.
 * @param bytes the text without a byte order mark
 * @param version the revision that a header names
 * @returns a promise for a large text, which is parsed in several turns of the event loop (P8)
 */
export function readMessages(
  bytes: Buffer,
  maxDepth: number,
  version?: string,
): PostedMessages | Promise<PostedMessages> {
  return isLarge(bytes.length)
    ? readBodyInTurns(bytes, maxDepth, limits).then((body) => toPostedMessages(body, version))
    : toPostedMessages(readBody(bytes, maxDepth, limits), version);
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
  const modern = namesModernRevision(version) ? first : messages.find((message) => message.isModern);
  if (modern !== undefined && body.batch) return createRefusal('modern_batch');
  const initialize = messages.find(({ method, kind }) => method === 'initialize' && kind === 'request');
  return { ok: true, messages, isBatch: body.batch, modern, initialize, id };
}

const requestId = (message: Message): RequestId | null => (message.kind === 'request' ? (message.id ?? null) : null);

/** RFC 8259, section 8.1: a byte order mark may be ignored. */
export const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
