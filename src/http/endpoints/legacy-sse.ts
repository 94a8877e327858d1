import type { CredentialWatch } from '../../auth/credential-watch.ts';
import type { Sessions } from '../../registry/sessions.ts';
import type { Reply } from '../../reply/reply.ts';
import { keyFromToken } from '../../session/session-key.ts';
import type { HttpContext } from '../http-context.ts';
import type { AdmissionOptions, AdmittedEndpoint } from '../pipeline/admission.ts';
import { modernNotServedData } from '../pipeline/modern-not-served.ts';
import type { ReadPost } from '../pipeline/read-messages.ts';
import { type MessagePolicy, MessageReceiver } from '../pipeline/receive-messages.ts';
import { receivePost } from '../pipeline/receive-post.ts';
import { expiringReply } from '../replies/expiring-reply.ts';
import { filteringReply } from '../replies/filtering-reply.ts';
import { LegacyPostReply, LegacySseReply, type LegacySseReplyOptions } from '../replies/legacy-sse-reply.ts';
import {
  beginningOfStream,
  isEndpointToken,
  type LegacySseResumePoint,
  newEndpointToken,
  parseLegacySseEventId,
} from '../replies/legacy-sse-resume-point.ts';

/** Options of the two endpoints of one server. */
export interface LegacySseOptions extends AdmissionOptions, LegacySseReplyOptions {
  readonly meters?: AdmissionOptions['meters'];
  readonly sessions: Pick<Sessions, 'atToken' | 'listenBeforeOpen' | 'openOneStream'>;
  /** Ends open streams and requests whose credentials have expired. */
  readonly watch: CredentialWatch;
  readonly maxDepth: number;
}

/**
 * The event stream of HTTP+SSE (2024-11-05, basic/transports), for clients that support no newer transport. GET opens
 * it. With an event id, GET resumes it on any instance, an addition of the gateway to this transport.
 */
export class LegacySseStream implements AdmittedEndpoint<HttpContext> {
  readonly #options: LegacySseOptions;

  constructor(options: LegacySseOptions) {
    this.#options = options;
  }

  serve(context: HttpContext): void {
    const { authorization, server, sessions, watch } = this.#options;
    if (context.method !== 'GET') return context.respondWithFault('only_a_stream');
    if (!context.accepts.sse) return context.respondWithFault('not_acceptable');
    const position = readPosition(context.header('last-event-id'));
    if (position === undefined) return context.respondWithFault('bad_event_id');
    const { token, after } = position;
    const { identity, principal } = context.sender;
    nameSession(context, token);
    const plain = new LegacySseReply(context, position, this.#options);
    const reply = expiringReply(filteringReply(plain, authorization.listFilter(identity)), identity, watch, null);
    if (after.epoch === 0) {
      const refused = sessions.listenBeforeOpen(token, server, principal, after, reply);
      if (refused === undefined)
        reply.stream(); // its `endpoint` event names the URL for `initialize`
      else reply.fault(refused, null);
      return;
    }
    const session = sessions.atToken(token, server, principal, context.header('mcp-protocol-version'));
    if (typeof session === 'string') reply.fault(session, null);
    else session.listen(after, reply);
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

  dispatch(context: HttpContext, { messages, isBatch, modern, initialize, id }: ReadPost, reply: Reply): void {
    const { server, sessions } = this.#options;
    const { principal } = context.sender;
    const version = context.header('mcp-protocol-version');
    if (modern !== undefined) return reply.fault('modern_not_served', id, { ...modernNotServedData(modern, version) });
    const token = readToken(context.url);
    if (token === undefined) return reply.fault('unknown_token', id);
    nameSession(context, token);
    if (initialize !== undefined && !isBatch)
      return sessions.openOneStream(token, server, principal, initialize, reply);
    const session = sessions.atToken(token, server, principal, version);
    if (typeof session === 'string') reply.fault(session, id);
    else session.post({ messages, isBatch }, reply);
  }
}

/** Names the session for the request log, if there is one. */
function nameSession(context: HttpContext, token: string): void {
  if (context.logId !== undefined) context.sessionKey = keyFromToken(token, context.sender.principal);
}

/** Returns the client's position; a new client is at the beginning of a session that it has yet to open. */
function readPosition(lastEventId: string | undefined): LegacySseResumePoint | undefined {
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (lastEventId === undefined || lastEventId === '') return { token: newEndpointToken(), after: beginningOfStream };
  return parseLegacySseEventId(lastEventId);
}

/** Returns the endpoint token of a request, which must have exactly one. */
function readToken(url: string): string | undefined {
  const [token, ...others] = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('token');
  return token !== undefined && others.length === 0 && isEndpointToken(token) ? token : undefined;
}
