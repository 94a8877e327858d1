import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { readTraceContext } from '../../protocol/http/trace-context.ts';
import { maxNameLength, readCallName } from '../../protocol/message/call-name.ts';
import type { Message } from '../../protocol/message/message.ts';
import { sessionName } from '../../session/session-events.ts';

/** Fields of a request's log line besides its response; each is undefined until it is known. */
export interface RequestLogFields {
  readonly requestId: string;
  server?: string;
  /** The short name of its session. */
  session?: string;
  /** The method of its JSON-RPC message; in a batch that of the first one. */
  call?: string | undefined;
  /** The tool or prompt that the message names. */
  name?: string | undefined;
  /** The W3C trace of the request. */
  traceId?: string | undefined;
}

/**
 * Key of the fields on the request, as in refused-calls.ts: without a request log this costs only one property read.
 */
const fieldsKey = Symbol('log fields of the request');
type LoggedRequest = IncomingMessage & { [fieldsKey]?: RequestLogFields };

/** Creates the log fields of a request. */
export function logRequest(incoming: IncomingMessage, requestId: string): RequestLogFields {
  const fields: RequestLogFields = { requestId };
  (incoming as LoggedRequest)[fieldsKey] = fields;
  return fields;
}

/** Logs the server of the endpoint. */
export function logServer(incoming: IncomingMessage, server: string): void {
  const fields = (incoming as LoggedRequest)[fieldsKey];
  if (fields !== undefined) fields.server = server;
}

/**
 * Logs the session of the request.
 * @param key the session's name in the store, or a function that returns it, called only if requests are logged
 */
export function logSession(incoming: IncomingMessage, key: string | (() => string)): void {
  const fields = (incoming as LoggedRequest)[fieldsKey];
  if (fields !== undefined) fields.session = sessionName(typeof key === 'string' ? key : key(), '').session;
}

/** Logs the messages of the request. Called again where a trace was begun for them. */
export function logMessages(incoming: IncomingMessage, [message]: readonly Message[]): void {
  const fields = (incoming as LoggedRequest)[fieldsKey];
  if (fields === undefined || message === undefined) return;
  fields.call = message.method?.slice(0, maxNameLength);
  fields.name = readCallName(message);
  fields.traceId = traceIdOf(message, incoming.headers);
}

/** W3C Trace Context, section 3.2.2. */
const traceparent = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/** Returns the trace of a message: the message itself takes precedence over its headers. */
function traceIdOf(message: Message, headers: IncomingHttpHeaders): string | undefined {
  const { traceparent: own } = readTraceContext(message, ['traceparent']);
  return traceparent.exec(own ?? headers['traceparent']?.toString() ?? '')?.[1];
}

/**
 * A UUID, or 32 hexadecimal digits as nginx makes them: the forms that proxies use. No other text is logged, since a
 * client can send anything, also its session id, which has neither form (P12).
 */
const requestIdPattern = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Returns the id that a proxy in front has given a request; undefined for any other text. */
export const givenRequestId = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' && requestIdPattern.test(header) ? header : undefined;

/** Returns the id by which logs name a request; undefined if neither the log nor a proxy has given one. */
export const requestIdOf = (incoming: IncomingMessage): string | undefined =>
  (incoming as LoggedRequest)[fieldsKey]?.requestId ?? givenRequestId(incoming.headers['x-request-id']);
