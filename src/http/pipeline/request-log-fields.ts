import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { readTraceContext } from '../../protocol/http/trace-context.ts';
import { maxNameLength, readCallName } from '../../protocol/message/call-name.ts';
import type { Message } from '../../protocol/message/message.ts';
import { sessionName } from '../../session/session-observer.ts';

/** What the log says of a request beside how it was answered; each is undefined until it is known. */
export interface RequestLogFields {
  readonly requestId: string;
  server?: string;
  /** The short name of its session. */
  session?: string;
  /** The method of its JSON-RPC message; of a batch that of the first. */
  call?: string | undefined;
  /** The tool or prompt that this names. */
  name?: string | undefined;
  /** The W3C trace that it belongs to. */
  traceId?: string | undefined;
}

/** On the request, as in refused-calls.ts: where nobody logs requests this costs a look at what is not there. */
const logged = Symbol('log fields of the request');
type Logged = IncomingMessage & { [logged]?: RequestLogFields };

/** The request will have a line in the log. */
export function logRequest(incoming: IncomingMessage, requestId: string): RequestLogFields {
  const line: RequestLogFields = { requestId };
  (incoming as Logged)[logged] = line;
  return line;
}

/** It has come to an endpoint of this server. */
export function logServer(incoming: IncomingMessage, server: string): void {
  const line = (incoming as Logged)[logged];
  if (line !== undefined) line.server = server;
}

/**
 * It is about a session.
 * @param key the session's name in the store, or what makes it, which is asked only where somebody logs
 */
export function logSession(incoming: IncomingMessage, key: string | (() => string)): void {
  const line = (incoming as Logged)[logged];
  if (line !== undefined) line.session = sessionName(typeof key === 'string' ? key : key(), '').session;
}

/** These messages are in it. Called again where a trace was begun for them. */
export function logMessages(incoming: IncomingMessage, [message]: readonly Message[]): void {
  const line = (incoming as Logged)[logged];
  if (line === undefined || message === undefined) return;
  line.call = message.method?.slice(0, maxNameLength);
  line.name = readCallName(message);
  line.traceId = traceIdOf(message, incoming.headers);
}

/** W3C Trace Context, section 3.2.2. */
const traceparent = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/** A message says more exactly to which trace it belongs than the headers that it came with. */
function traceIdOf(message: Message, headers: IncomingHttpHeaders): string | undefined {
  const { traceparent: own } = readTraceContext(message, ['traceparent']);
  return traceparent.exec(own ?? headers['traceparent']?.toString() ?? '')?.[1];
}

/**
 * A UUID, or 32 hexadecimal digits as nginx makes them: what proxies put there. Nothing else goes into the log, since a client can
 * write anything, its session id too, which has neither form (P12).
 */
const trusted = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** The id that a proxy in front has given a request; undefined for anything else in its place. */
export const givenRequestId = (given: string | readonly string[] | undefined): string | undefined =>
  typeof given === 'string' && trusted.test(given) ? given : undefined;

/** The id of a request, by which it is found in logs; undefined if neither the log nor a proxy has given it one. */
export const requestIdOf = (incoming: IncomingMessage): string | undefined =>
  (incoming as Logged)[logged]?.requestId ?? givenRequestId(incoming.headers['x-request-id']);
