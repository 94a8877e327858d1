import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { Logger } from 'pino';
import { faultGiven } from '../http/respond.ts';

/** What a log of requests needs. */
export interface RequestLogOptions {
  readonly logger: Logger;
  /** Paths that are named in it; what a client writes in any other can be a secret. */
  readonly paths: Pick<ReadonlySet<string>, 'has'>;
}

/**
 * A line at `debug` for each request when its answer is over, with an id that the client is told as `X-Request-Id`. Where nobody
 * hears `debug` the listener is what it was: nothing is done for a request.
 */
export function logRequests(listener: RequestListener, { logger, paths }: RequestLogOptions): RequestListener {
  if (!logger.isLevelEnabled('debug')) return listener;
  return (incoming, outgoing) => {
    const startedAt = performance.now();
    const requestId = requestIdOf(incoming.headers['x-request-id']);
    const { method, url = '' } = incoming;
    const [path = ''] = url.split('?', 1);
    outgoing.setHeader('x-request-id', requestId);
    outgoing.once('close', () => {
      const durationMs = Math.round(performance.now() - startedAt);
      const left = outgoing.writableFinished ? undefined : true;
      const answer = { status: outgoing.statusCode, reason: faultGiven(incoming), durationMs, left };
      logger.debug({ requestId, method, path: paths.has(path) ? path : undefined, ...answer }, 'request');
    });
    listener(incoming, outgoing);
  };
}

/**
 * A UUID, or 32 hexadecimal digits as nginx makes them: what proxies put there. Nothing else goes into the log, since a client can
 * write anything, its session id too, which has neither form (P12).
 */
const trusted = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** The id that a proxy in front has given a request, or a new one. */
export const requestIdOf = (given: string | readonly string[] | undefined): string =>
  typeof given === 'string' && trusted.test(given) ? given : randomUUID();
