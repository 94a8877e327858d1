import type { CredentialWatch } from '../../auth/credential-watch.ts';
import { faultMessage } from '../../protocol/faults.ts';
import { namesModernRevision } from '../../protocol/known-revisions.ts';
import type { Message } from '../../protocol/message/message.ts';
import { modernNotServedData } from '../../protocol/modern/modern-not-served.ts';
import type { Sessions } from '../../registry/sessions.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import { accepted, type CompleteAnswer, faultAnswer, type Reply } from '../../reply/reply.ts';
import { keyFromToken } from '../../session/session-key.ts';
import type { HttpContext } from '../http-context.ts';
import type { AdmissionOptions, AdmittedEndpoint } from '../pipeline/admission.ts';
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
  readonly sessions: Pick<
    Sessions,
    'atToken' | 'listenBeforeOpen' | 'openOneStream' | 'postBeforeOpen' | 'tellBeforeOpen'
  >;
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
    if (context.method !== 'GET') return context.respondWithFault('only_a_stream');
    if (!context.accepts.sse) return context.respondWithFault('not_acceptable');
    const position = parseLegacySseEventId(context.header('last-event-id') ?? '');
    if (position === undefined) this.#begin(context, newEndpointToken());
    else if (position.after.epoch === 0) this.#begin(context, position.token);
    else this.#resume(context, position);
  }

  /**
   * Opens a stream whose session the client has yet to open. A client gets such a stream, too, if its event id is of
   * another gateway, or of a session that has ended: an EventSource would never come back after an error.
   */
  #begin(context: HttpContext, token: string): void {
    const { server, sessions } = this.#options;
    nameSession(context, token);
    const reply = this.#replyTo(context, { token, after: beginningOfStream });
    const open = (): void => {
      reply.stream();
    };
    const { principal } = context.sender;
    const refused = sessions.listenBeforeOpen(token, server, principal, beginningOfStream, reply, open);
    if (refused !== undefined) reply.answer(faultAnswer(refused, null));
  }

  #resume(context: HttpContext, position: LegacySseResumePoint): void {
    const { server, sessions } = this.#options;
    const { token, after } = position;
    nameSession(context, token);
    const reply = this.#replyTo(context, position, () => this.#begin(context, newEndpointToken()));
    const session = sessions.atToken(token, server, context.sender.principal, legacyVersionOf(context));
    if (typeof session === 'string') reply.answer(faultAnswer(session, null));
    else session.listen(after, reply);
  }

  #replyTo(context: HttpContext, position: LegacySseResumePoint, onUnknown?: () => void): Reply {
    const { authorization, watch } = this.#options;
    const { identity } = context.sender;
    const plain = new LegacySseReply(context, position, this.#options, onUnknown);
    return expiringReply(filteringReply(plain, authorization.listFilter(identity)), identity, watch, null);
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
    const token = readToken(context.url);
    if (token === undefined) return reply.answer(faultAnswer('unknown_token', id));
    nameSession(context, token);
    if (initialize !== undefined && modern === undefined && !isBatch)
      return sessions.openOneStream(token, server, principal, initialize, reply);
    const version = legacyVersionOf(context);
    const session = sessions.atToken(token, server, principal, version);
    const early = new EarlyPostReply(reply, () => {
      if (modern === undefined)
        return sessions.postBeforeOpen(token, server, principal, { messages, isBatch, id, version }, reply);
      this.#refuseModern(context, token, modern, reply);
    });
    if (typeof session === 'string') early.answer(faultAnswer(session, id));
    else session.post({ messages, isBatch }, early);
  }

  /**
   * Refuses a message of the modern era on the client's stream. Clients that speak both eras begin with one, and take a
   * POST with an error for the end of the connection.
   */
  #refuseModern(context: HttpContext, token: string, message: Message, reply: Reply): void {
    const data = { ...modernNotServedData(message, context.header('mcp-protocol-version')) };
    const id = message.kind === 'request' ? (message.id ?? null) : null;
    const isTold =
      id === null ||
      this.#options.sessions.tellBeforeOpen(
        token,
        context.sender.principal,
        Buffer.from(faultMessage('modern_not_served', id, data)),
      );
    if (!isTold) return reply.answer(faultAnswer('modern_not_served', id, data));
    context.reportRefusal('modern_not_served');
    reply.answer(accepted);
  }
}

/** The reply to a POST whose session may not exist yet. */
class EarlyPostReply extends ForwardingReply {
  readonly #onUnknown: () => void;

  constructor(reply: Reply, onUnknown: () => void) {
    super(reply);
    this.#onUnknown = onUnknown;
  }

  override answer(answer: CompleteAnswer): void {
    if (answer.kind === 'fault' && answer.reason === 'unknown_session') this.#onUnknown();
    else this.reply.answer(answer);
  }
}

/** The revision that a request names. The transport has no header for it, so a header of the other era means nothing. */
function legacyVersionOf(context: HttpContext): string | undefined {
  const version = context.header('mcp-protocol-version');
  return namesModernRevision(version) ? undefined : version;
}

/** Names the session for the request log, if there is one. */
function nameSession(context: HttpContext, token: string): void {
  if (context.logId !== undefined) context.sessionKey = keyFromToken(token, context.sender.principal);
}

/** Returns the endpoint token of a request, which must have exactly one. */
function readToken(url: string): string | undefined {
  const [token, ...others] = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('token');
  return token !== undefined && others.length === 0 && isEndpointToken(token) ? token : undefined;
}
