import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { Logger } from 'pino';
import { givenRequestId, logRequest, logSession } from '../../http/pipeline/request-log-fields.ts';
import { faultOfResponse } from '../../http/respond.ts';
import { pathOf } from '../../protocol/http/request-header.ts';
import { keyFromId } from '../../session/session-key.ts';

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
export function logRequests(listener: RequestListener, { logger, paths, from }: RequestLogOptions): RequestListener {
  return (incoming, outgoing) => {
    if (!logger.isLevelEnabled('debug')) return listener(incoming, outgoing);
    const startedAt = performance.now();
    const requestId = requestIdFor(incoming.headers['x-request-id']);
    const line = logRequest(incoming, requestId);
    const { method, url = '' } = incoming;
    const path = pathOf(url);
    outgoing.setHeader('x-request-id', requestId);
    outgoing.once('close', () => {
      const durationMs = Math.round(performance.now() - startedAt);
      const opened = outgoing.getHeader('mcp-session-id');
      if (typeof opened === 'string') logSession(incoming, keyFromId(opened));
      const left = outgoing.writableFinished ? undefined : true;
      const answer = { status: outgoing.statusCode, reason: faultOfResponse(incoming), durationMs, left };
      logger.debug({ from, ...line, method, path: paths.has(path) ? path : undefined, ...answer }, 'request');
    });
    listener(incoming, outgoing);
  };
}

/** Returns the id that a proxy in front has set, or a new one. */
export const requestIdFor = (given: string | readonly string[] | undefined): string =>
  givenRequestId(given) ?? randomUUID();
