import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { Logger } from 'pino';
import { givenRequestId, logRequest, logSession } from '../../http/pipeline/request-log-fields.ts';
import { faultOfResponse } from '../../http/respond.ts';
import { keyFromId } from '../../session/session-key.ts';

/** What a log of requests needs. */
export interface RequestLogOptions {
  readonly logger: Logger;
  /** Paths that are named in it; what a client writes in any other can be a secret. */
  readonly paths: Pick<ReadonlySet<string>, 'has'>;
  /** Who sends them, where that is no client. */
  readonly from?: string;
}

/**
 * A line at `debug` for each request when its answer is over, with an id that the client is told as `X-Request-Id`. While nobody
 * hears `debug` nothing else is done for a request.
 */
export function logRequests(listener: RequestListener, { logger, paths, from }: RequestLogOptions): RequestListener {
  return (incoming, outgoing) => {
    if (!logger.isLevelEnabled('debug')) return listener(incoming, outgoing);
    const startedAt = performance.now();
    const requestId = requestIdFor(incoming.headers['x-request-id']);
    const line = logRequest(incoming, requestId);
    const { method, url = '' } = incoming;
    const [path = ''] = url.split('?', 1);
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

/** The id that a proxy in front has given a request, or a new one. */
export const requestIdFor = (given: string | readonly string[] | undefined): string =>
  givenRequestId(given) ?? randomUUID();
