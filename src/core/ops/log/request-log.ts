import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Endpoint, HttpContext } from '../../http/http-context.ts';
import { givenRequestId } from '../../protocol/http/request-header.ts';
import { readTraceContext } from '../../protocol/http/trace-context.ts';
import { maxNameLength, readCallName } from '../../protocol/message/call-name.ts';
import type { Message } from '../../protocol/message/message.ts';
import { sessionName } from '../../session/session-events.ts';
import { keyFromId } from '../../session/session-key.ts';
import { contain } from '../../util/boundary.ts';

/** The settings of a request log. */
export interface RequestLogOptions {
  readonly logger: Logger;
  /** Paths that the log may name. Other paths come from clients and may contain secrets. */
  readonly paths: Pick<ReadonlySet<string>, 'has'>;
  /** The sender, if it is not a client. */
  readonly from?: string;
}

/**
 * Logs each request at `debug` when its response has ended, with the id that the client gets as `X-Request-Id`. While
 * `debug` is disabled, a request costs nothing more than one check.
 */
export function logRequests(endpoint: Endpoint, { logger, paths, from }: RequestLogOptions): Endpoint {
  return (context) => {
    if (!logger.isLevelEnabled('debug')) return endpoint(context);
    const { outgoing, method, path, startedAt } = context;
    const requestId = requestIdFor(context.headers['x-request-id']);
    context.logId = requestId;
    outgoing.setHeader('x-request-id', requestId);
    const logLine = (): void => {
      const durationMs = Math.round(performance.now() - startedAt);
      const left = outgoing.writableFinished ? undefined : true;
      const answer = { status: outgoing.statusCode, reason: context.fault, durationMs, left };
      const knownPath = paths.has(path) ? path : undefined;
      logger.debug({ from, requestId, ...fieldsOf(context), method, path: knownPath, ...answer }, 'request');
    };
    outgoing.once('close', () => contain('request', logLine));
    endpoint(context);
  };
}

/** Returns the log fields that the steps have found out. In a batch, `call` and `name` are those of the first message. */
function fieldsOf({ endpoint, messages, tracedMessages, headers, sessionKey, outgoing }: HttpContext): object {
  const [message] = tracedMessages ?? messages ?? [];
  const opened = outgoing.getHeader('mcp-session-id');
  const key = typeof opened === 'string' ? keyFromId(opened) : sessionKey;
  return {
    server: endpoint?.server.name,
    call: message?.method?.slice(0, maxNameLength),
    name: message && readCallName(message),
    traceId: message && traceIdOf(message, headers),
    session: key && sessionName(key, '').session,
  };
}

/** W3C Trace Context, section 3.2.2. */
const traceparent = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/** Returns the trace of a message: the message itself takes precedence over its headers. */
function traceIdOf(message: Message, headers: HttpContext['headers']): string | undefined {
  const { traceparent: own } = readTraceContext(message, ['traceparent']);
  return traceparent.exec(own ?? headers['traceparent']?.toString() ?? '')?.[1];
}

/** Returns the id that a proxy in front has set, or a new one. */
export const requestIdFor = (given: string | readonly string[] | undefined): string =>
  givenRequestId(given) ?? randomUUID();
