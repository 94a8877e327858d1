import type { Identity } from '../../auth/identity.ts';
import { type Authorization, hasAllScopes } from '../../auth/scopes/authorization.ts';
import { type Message, memberValue } from '../../protocol/message/message.ts';
import { type PostedMessages, type ReadPost, readMessages } from '../../protocol/message/read-messages.ts';
import { shortened } from '../../protocol/message/shortened.ts';
import { withoutBom } from '../../protocol/wire/lines.ts';
import type { Reply } from '../../reply/reply.ts';
import type { UnwrapCall } from '../../server/server.ts';
import type { Refusal, RequestContext } from '../request-context.ts';
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
  readonly server: { readonly name: string; readonly unwrapCall?: UnwrapCall | undefined };
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
  readonly #unwrapCall: UnwrapCall | undefined;
  readonly #trace: TraceRequests | undefined;

  constructor(policy: MessagePolicy<C>, options: MessageReceiverOptions, protocol: 'http' | 'websocket') {
    this.#policy = policy;
    this.#authorization = options.authorization;
    this.#maxDepth = options.maxDepth;
    this.#unwrapCall = options.server.unwrapCall;
    this.#trace = options.tracePosts?.(options.server.name, protocol);
  }

  /** Reads one text of a client, which holds a message or a batch. Returns a promise for a large text. */
  read(context: C, bytes: Buffer): PostedMessages | Promise<PostedMessages> {
    return readMessages(withoutBom(bytes), this.#maxDepth, context.header('mcp-protocol-version'));
  }

  /** Receives the messages that were read, or refuses what could not be read. */
  receive(context: C, posted: PostedMessages): void {
    const read = posted.ok && this.#unwrapCall !== undefined ? unwrapCalls(context, posted, this.#unwrapCall) : posted;
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
    const dispatched = traced?.posted ?? read;
    const plain = this.#policy.createReply(context, dispatched);
    this.#policy.dispatch(context, dispatched, traced?.traceReply(plain) ?? plain);
    // The context lives until the answer.
    context.messages = messages.map(shortened);
    context.tracedMessages = traced?.posted.messages.map(shortened);
  }
}

/** The header in which a modern client repeats the name of the tool (2026-07-28, basic/transports/streamable-http). */
const nameHeader = 'mcp-name';

/**
 * Gives calls that clients make through another tool their own form, before anything reads their names. The header that
 * repeats the name then says the own name, too.
 */
function unwrapCalls({ headers }: RequestContext, read: ReadPost, unwrap: UnwrapCall): ReadPost {
  let { modern } = read;
  const messages = read.messages.map((message) => {
    const own = unwrap(message);
    if (own === undefined) return message;
    if (message.isModern) {
      // A header that differs is refused later on, as for any other call.
      const said = headers[nameHeader];
      if (said !== memberValue(message, 'params', 'name') || !/^[\x21-\x7e]+$/.test(own.name)) return message;
      headers[nameHeader] = own.name;
    }
    if (message === modern) modern = own.message;
    return own.message;
  });
  return { ...read, messages, modern };
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
