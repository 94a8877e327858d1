import type { Identity } from '../../auth/identity.ts';
import { type Authorization, hasAllScopes } from '../../auth/scopes/authorization.ts';
import type { Message } from '../../protocol/message/message.ts';
import { shortened } from '../../protocol/message/shortened.ts';
import { withoutBom } from '../../protocol/wire/lines.ts';
import type { Reply } from '../../reply/reply.ts';
import type { Refusal, RequestContext } from '../request-context.ts';
import { type PostedMessages, type ReadPost, readMessages } from './read-messages.ts';
import type { RequestTracing, TraceRequests } from './traced-messages.ts';

/** How one kind of endpoint treats messages: what differs between the endpoints behind `MessageReceiver`. */
export interface MessagePolicy<C extends RequestContext> {
  /** Creates the reply to messages that will be dispatched. */
  createReply(context: C, posted: ReadPost): Reply;
  /** Passes the messages on, and answers the reply, at once or later. */
  dispatch(context: C, posted: ReadPost, reply: Reply): void;
}

/** The rules of an endpoint for messages. */
export interface MessageReceiverOptions {
  readonly server: { readonly name: string };
  readonly authorization: Authorization;
  readonly maxDepth: number;
  /** Creates the spans of requests; absent without tracing. */
  readonly tracePosts?: RequestTracing | undefined;
}

const none: readonly Message[] = [];

/**
 * Receives the messages of clients at one endpoint, whichever protocol carries them: reads, admits, authorizes, counts,
 * traces and dispatches them, in this order. Messages that are refused are not counted and have no span.
 */
export class MessageReceiver<C extends RequestContext> {
  readonly #policy: MessagePolicy<C>;
  readonly #authorization: Authorization;
  readonly #maxDepth: number;
  readonly #trace: TraceRequests | undefined;

  constructor(policy: MessagePolicy<C>, options: MessageReceiverOptions, protocol: 'http' | 'websocket') {
    this.#policy = policy;
    this.#authorization = options.authorization;
    this.#maxDepth = options.maxDepth;
    this.#trace = options.tracePosts?.(options.server.name, protocol);
  }

  /** Reads one text of a client, which holds a message or a batch. Returns a promise for a large text. */
  read(context: C, bytes: Buffer): PostedMessages | Promise<PostedMessages> {
    return readMessages(withoutBom(bytes), this.#maxDepth, context.header('mcp-protocol-version'));
  }

  /** Receives the messages that were read, or refuses what could not be read. */
  receive(context: C, read: PostedMessages): void {
    context.answerId = read.id;
    context.messages = read.ok ? read.messages : undefined;
    const reason = context.admitMessages(context.messages ?? none);
    if (reason !== undefined) return context.refuse({ reason, id: read.id });
    if (!read.ok) return context.refuse(read);
    const { messages } = read;
    const needs = this.#authorization.neededBy(messages);
    context.needs = needs.length === 0 ? undefined : needs;
    const refusal = authorizeMessages(context.needs, context.sender.identity, this.#authorization, context.url);
    if (refusal !== undefined) return context.refuse({ ...refusal, id: read.id });
    context.countMessages(messages);
    const traced = this.#trace?.(read, context.headers, context.requestId);
    context.tracedMessages = traced?.posted.messages;
    const posted = traced?.posted ?? read;
    const plain = this.#policy.createReply(context, posted);
    this.#policy.dispatch(context, posted, traced?.traceReply(plain) ?? plain);
    // The context lives until the answer.
    context.messages = messages.map(shortened);
    context.tracedMessages = traced?.posted.messages.map(shortened);
  }
}

/**
 * Refuses messages if their sender lacks a scope for any of them: the messages of a batch are accepted together or not
 * at all.
 * @param needs the scopes that the messages need together; undefined for none
 * @param url the path of the POST; undefined without one
 */
function authorizeMessages(
  needs: readonly string[] | undefined,
  identity: Identity,
  authorization: Authorization,
  url: string | undefined,
): Refusal | undefined {
  if (needs === undefined || hasAllScopes(identity, needs)) return undefined;
  const data = { scope: authorization.requestedScopes(identity, needs).join(' ') };
  return { data, ...authorization.challengeTo(identity, needs, { url }) };
}
