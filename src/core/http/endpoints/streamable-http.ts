// src/core/http/endpoints: one endpoint for each protocol that clients speak.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { cachePerConnection } from '../../auth/cache-per-connection.ts';
import type { CredentialWatch } from '../../auth/credential-watch.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { namesModernRevision } from '../../protocol/known-revisions.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { ReadPost } from '../../protocol/message/read-messages.ts';
import type { Era } from '../../protocol/revisions.ts';
import { type EventId, finalSeq, parseEventId } from '../../protocol/wire/event-id.ts';
import type { Sessions } from '../../registry/sessions.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import { type CompleteAnswer, faultAnswer, nothing, type Reply } from '../../reply/reply.ts';
import { finalEventsFor } from '../../reply/unresumable-stream.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import { keyFromId } from '../../session/session-key.ts';
import type { HttpContext } from '../http-context.ts';
import type { AdmissionOptions, AdmittedEndpoint } from '../pipeline/admission.ts';
import { type MessagePolicy, MessageReceiver } from '../pipeline/receive-messages.ts';
import { receivePost } from '../pipeline/receive-post.ts';
import { expiringReply } from '../replies/expiring-reply.ts';
import { filteringReply } from '../replies/filtering-reply.ts';
import { HttpReply } from '../replies/http-reply.ts';
import type { RequestContext } from '../request-context.ts';

/** Options of an endpoint. */
export interface StreamableHttpEndpointOptions extends AdmissionOptions {
  readonly sessions: Pick<Sessions, 'anywhere' | 'open'>;
  /** Serves messages of the modern era; absent if they are refused. */
  readonly modern?: { post(context: RequestContext, message: Message, reply: Reply): void };
  /** Serves requests of the legacy era without a session id; absent if they are refused. */
  readonly sessionless?: { post(context: RequestContext, posted: ReadPost, reply: Reply): void } | undefined;
  /** Ends open streams and requests whose credentials have expired. */
  readonly watch: CredentialWatch;
  readonly maxDepth: number;
  readonly heartbeatMs: number;
  readonly slowReaderMs: number;
}

/**
 * The Streamable HTTP endpoint of one server (2025-11-25, basic/transports). POST sends messages, GET opens the
 * standalone stream or resumes one, DELETE ends the session. Messages of the modern era go to their own endpoint, even
 * with a session id (2026-07-28, basic/versioning).
 */
export class StreamableHttpEndpoint implements AdmittedEndpoint<HttpContext>, MessagePolicy<HttpContext> {
  readonly #options: StreamableHttpEndpointOptions;
  readonly #receiver: MessageReceiver<HttpContext>;

  constructor(options: StreamableHttpEndpointOptions) {
    this.#options = options;
    this.#receiver = new MessageReceiver(this, options, 'http');
  }

  serve(context: HttpContext): void {
    const { method, headers } = context;
    if (method === 'POST') return this.#post(context);
    if (method !== 'GET' && method !== 'DELETE') return context.respondWithFault('method_not_allowed');
    const refusal = findPostOnlyReason(headers, this.#options.sessionless !== undefined);
    if (refusal !== undefined) return context.respondWithFault(refusal);
    if (method === 'GET') this.#get(context);
    else this.#remove(context);
  }

  #post(context: HttpContext): void {
    const { json, sse } = context.accepts;
    receivePost(context, this.#options.maxBodyBytes, json || sse, this.#receiver);
  }

  #get(context: HttpContext): void {
    if (!context.accepts.sse) return context.respondWithFault('not_acceptable');
    const session = this.#findSession(context);
    const after = readLastEventId(context.header('last-event-id'));
    if (after === 'malformed') return context.respondWithFault(typeof session === 'string' ? session : 'bad_event_id');
    const plain = this.#replyTo(context, null, 'legacy');
    const reply = after === undefined ? plain : new ResumeReply(plain, after);
    if (typeof session === 'string') return reply.answer(faultAnswer(session, null));
    session.listen(after, reply);
  }

  #remove(context: HttpContext): void {
    const session = this.#findSession(context);
    if (typeof session === 'string') return context.respondWithFault(session);
    session.remove(this.#replyTo(context, null, 'legacy'));
  }

  createReply(context: HttpContext, { id, modern }: ReadPost): Reply {
    return this.#replyTo(context, id, modern === undefined ? 'legacy' : 'modern');
  }

  dispatch(context: HttpContext, posted: ReadPost, reply: Reply): void {
    const { server, sessions, sessionless } = this.#options;
    const { messages, isBatch, modern, initialize, id } = posted;
    if (modern !== undefined) {
      if (this.#options.modern === undefined) reply.answer(faultAnswer('unsupported_version', id));
      else this.#options.modern.post(context, modern, reply);
      return;
    }
    // An `initialize` in a session goes to the session, which refuses it. A client of an unknown session gets 404, as with
    // any other message, and starts anew.
    const namesSession = context.headers['mcp-session-id'] !== undefined;
    if (initialize !== undefined && !namesSession && !isBatch)
      return sessions.open(server, context.sender.principal, initialize, reply);
    if (!namesSession && sessionless !== undefined) return sessionless.post(context, posted, reply);
    const session = this.#findSession(context);
    if (typeof session === 'string') return reply.answer(faultAnswer(session, id));
    session.post({ messages, isBatch }, reply);
  }

  #replyTo(context: HttpContext, id: RequestId | null, era: Era): Reply {
    const { authorization, watch } = this.#options;
    const { identity } = context.sender;
    const reply = filteringReply(new HttpReply(context, this.#options), authorization.listFilter(identity));
    return expiringReply(reply, identity, watch, id, era);
  }

  #findSession(context: HttpContext): SessionHandle | Reason {
    const { server, sessions } = this.#options;
    const sessionHeader = readSessionHeader(context.incoming);
    if (typeof sessionHeader === 'string') return sessionHeader;
    context.sessionKey = sessionHeader.key;
    const version = context.header('mcp-protocol-version');
    return sessions.anywhere({ key: sessionHeader.key, server, principal: context.sender.principal, version });
  }
}

/**
 * Returns why a client may only POST, if so: there is no session that its GET or DELETE could refer to.
 * @param servesSessionless whether requests of the legacy era without a session id are served
 */
export function findPostOnlyReason(headers: IncomingHttpHeaders, servesSessionless: boolean): Reason | undefined {
  if (headers['mcp-session-id'] !== undefined) return undefined;
  if (namesModernRevision(headers['mcp-protocol-version']?.toString())) return 'post_only';
  return servesSessionless ? 'sessionless_post_only' : undefined;
}

function readLastEventId(text: string | undefined): EventId | undefined | 'malformed' {
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (text === undefined || text === '') return undefined;
  return parseEventId(text) ?? 'malformed';
}

/**
 * The form of the gateway's own ids: visible characters (2025-11-25, basic/transports, "Session Management"). Ids of
 * another form come from other gateways. Their sessions are unknown here, which makes clients start anew.
 */
const sessionIdPattern = /^[\x21-\x7e]{1,128}$/;

const findSessionKey = cachePerConnection('Mcp-Session-Id', (id) =>
  sessionIdPattern.test(id) ? { key: keyFromId(id) } : undefined,
);

/** Returns the name of the session (`keyFromId`) in the request's header, or the reason why there is none. */
function readSessionHeader({ headers, socket }: IncomingMessage): { readonly key: string } | Reason {
  const id = headers['mcp-session-id'];
  if (id === undefined) return 'session_required';
  return (typeof id === 'string' ? findSessionKey(socket, id) : undefined) ?? 'unknown_session';
}

/**
 * The reply to a GET with `Last-Event-ID`. A stream that can never be resumed gets its final events instead of an error
 * status.
 */
class ResumeReply extends ForwardingReply {
  readonly #after: EventId;

  constructor(reply: Reply, after: EventId) {
    super(reply);
    this.#after = after;
  }

  override answer(answer: CompleteAnswer): void {
    if (answer.kind !== 'fault') return this.reply.answer(answer);
    const finalEvents = finalEventsFor(answer.reason, this.#after);
    if (answer.reason === 'unknown_session' && this.#after.seq === finalSeq) this.reply.answer(nothing);
    else if (finalEvents === undefined) this.reply.answer(answer);
    else {
      const sink = this.reply.stream();
      sink.write(finalEvents);
      sink.end();
    }
  }
}
