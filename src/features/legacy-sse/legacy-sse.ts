import { randomBytes } from 'node:crypto';
import type { CredentialWatch } from '../../core/auth/credential-watch.ts';
import type { HttpContext } from '../../core/http/http-context.ts';
import type { AdmissionOptions, AdmittedEndpoint } from '../../core/http/pipeline/admission.ts';
import { type MessagePolicy, MessageReceiver } from '../../core/http/pipeline/receive-messages.ts';
import { receivePost } from '../../core/http/pipeline/receive-post.ts';
import { expiringReply } from '../../core/http/replies/expiring-reply.ts';
import { filteringReply } from '../../core/http/replies/filtering-reply.ts';
import { isLegacyRevision, namesModernRevision } from '../../core/protocol/known-revisions.ts';
import type { ReadPost } from '../../core/protocol/message/read-messages.ts';
import { faultAnswer, type Reply } from '../../core/reply/reply.ts';
import type { SessionLookup } from '../../core/session/lookup.ts';
import { keyFromToken } from '../../core/session/session-key.ts';
import { LegacyPostReply, LegacySseReply, type LegacySseReplyOptions } from './legacy-sse-reply.ts';
import { SseClient, type SseSessions } from './sse-client.ts';

/** Options of the two endpoints of one server. */
export interface LegacySseOptions extends AdmissionOptions, LegacySseReplyOptions {
  readonly meters?: AdmissionOptions['meters'];
  readonly sessions: SseSessions;
  /** How long the stream of a client may be open without a session, beside the server's time to start. */
  readonly sseOpenMs: number;
  /** Ends open streams and requests whose credentials have expired. */
  readonly watch: CredentialWatch;
  readonly maxDepth: number;
}

/**
 * The event stream of HTTP+SSE (2024-11-05, basic/transports), for clients that support no newer transport. GET opens
 * it. A client gets a new stream whatever its `Last-Event-ID` is: an EventSource would never come back after an error.
 */
export class LegacySseStream implements AdmittedEndpoint<HttpContext> {
  readonly #options: LegacySseOptions;

  constructor(options: LegacySseOptions) {
    this.#options = options;
  }

  serve(context: HttpContext): void {
    const { server, sessions, sseOpenMs, authorization, watch } = this.#options;
    if (context.method !== 'GET') return context.respondWithFault('only_a_stream');
    if (!context.accepts.sse) return context.respondWithFault('not_acceptable');
    const { identity, principal } = context.sender;
    const token = newEndpointToken();
    const key = keyFromToken(token, principal);
    nameSession(context, key);
    const plain = new LegacySseReply(context, token, this.#options);
    const reply = expiringReply(filteringReply(plain, authorization.listFilter(identity)), identity, watch, null);
    const refused = SseClient.connect(sessions, { key, server, principal }, reply, sseOpenMs);
    if (refused !== undefined) reply.answer(faultAnswer(refused, null));
  }
}

/** The endpoint to which such clients POST their messages. The answers go to the stream. */
export class LegacyMessagesEndpoint implements AdmittedEndpoint<HttpContext>, MessagePolicy<HttpContext> {
  readonly #options: LegacySseOptions;
  readonly #receiver: MessageReceiver<HttpContext>;

  constructor(options: LegacySseOptions) {
    this.#options = options;
    this.#receiver = new MessageReceiver(this, options, 'http');
  }

  serve(context: HttpContext): void {
    if (context.method !== 'POST') return context.respondWithFault('only_messages');
    receivePost(context, this.#options.maxBodyBytes, true, this.#receiver);
  }

  createReply(context: HttpContext, { id }: ReadPost): Reply {
    const { watch } = this.#options;
    return expiringReply(new LegacyPostReply(context, this.#options), context.sender.identity, watch, id);
  }

  dispatch(context: HttpContext, { messages, isBatch, modern, id }: ReadPost, reply: Reply): void {
    const { server, sessions } = this.#options;
    const { principal } = context.sender;
    const token = readToken(context.url);
    if (token === undefined) return reply.answer(faultAnswer('unknown_token', id));
    const key = keyFromToken(token, principal);
    nameSession(context, key);
    const version = legacyVersionOf(context);
    if (version !== undefined && !isLegacyRevision(version))
      return reply.answer(faultAnswer('unsupported_version', id));
    // The client learns of the refusal on its stream.
    if (modern?.kind === 'request') context.reportRefusal('modern_not_served');
    const lookup: SessionLookup = { key, server, principal, version };
    sessions.clients.post(lookup, { messages, isBatch }, reply);
  }
}

/** The revision that a request names. The transport has no header for it, so a header of the other era means nothing. */
function legacyVersionOf(context: HttpContext): string | undefined {
  const version = context.header('mcp-protocol-version');
  return namesModernRevision(version) ? undefined : version;
}

/** Names the session for the request log, if there is one. */
function nameSession(context: HttpContext, key: string): void {
  if (context.logId !== undefined) context.sessionKey = key;
}

/** Returns the endpoint token of a request, which must have exactly one. */
function readToken(url: string): string | undefined {
  const [token, ...others] = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('token');
  return token !== undefined && others.length === 0 && isEndpointToken(token) ? token : undefined;
}

/** 32 bytes in base64url. */
const tokenPattern = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Creates the secret in the URL to which a client of HTTP+SSE posts: 256 random bits. */
export const newEndpointToken = (): string => randomBytes(32).toString('base64url');

/** True for a text that `newEndpointToken` could have made. */
export const isEndpointToken = (text: string): boolean => tokenPattern.test(text);
