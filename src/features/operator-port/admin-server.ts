// The admin server: health checks, metrics and the status page on a port of their own.

import { once } from 'node:events';
import { type AddressInfo, isIP } from 'node:net';
import type { AdminServer, AdminServerOptions } from '../../app/features/telemetry.ts';
import { createOriginRules, isHost, isLoopback } from '../../core/auth/origin-rules.ts';
import type { Endpoint } from '../../core/http/http-context.ts';
import { createHttpServer } from '../../core/http/http-server.ts';

/** Enough for a scraper, a probe and a few people. More connections would only take resources from clients (P8). */
const maxConnections = 100;

/**
 * True if the page that sends a request was served by this server. On a network address this is no protection by
 * itself, because any host name may be used there. Actions need credentials, which no other page has.
 */
const isOwnOrigin = (origin: string | undefined, host: string | undefined): boolean =>
  origin !== undefined && URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();

/**
 * True for an IP address and for a name without a dot, such as the gateway has for a Prometheus beside it. No web page
 * can own such a name and point it at this server (DNS rebinding).
 */
function isUndottedHost(host = ''): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(name) !== 0 || !name.includes('.');
}

/** Requests have no bodies or small ones. */
const bodyTimeoutMs = 10_000;

const connectionIdleMs = 75_000;
const slowReaderMs = 30_000;

/**
 * Starts the HTTP server for operators, separate from the server for clients. It may have another address, and it
 * answers also when the other server has reached its connection limit. Only its own page may use it: Host and Origin
 * are checked as at the endpoints (docs/decisions/0042). Rejects with the error of Node.js if it cannot listen.
 */
export async function startAdminServer({
  host,
  port,
  certificate,
  allowHost,
  endpoint,
  isPagePath,
}: AdminServerOptions): Promise<AdminServer> {
  const rules = createOriginRules({ host, allowOrigin: [], allowHost: isLoopback(host) ? [] : allowHost });
  const answer: Endpoint = (context) => {
    const { host: name, origin } = context.headers;
    const refused = !isHost(name)
      ? 'bad_host'
      : !(rules.allowsHost(name) || (!isLoopback(host) && isUndottedHost(name)))
        ? 'host_not_allowed'
        : !rules.allowsOrigin(origin) && !(isPagePath(context.path) && isOwnOrigin(origin, name))
          ? 'origin_not_allowed'
          : undefined;
    if (refused === undefined) endpoint(context);
    else context.respondWithFault(refused);
  };
  const httpServer = createHttpServer(
    { certificate, bodyTimeoutMs, connectionIdleMs, maxConnections, slowReaderMs },
    answer,
  );
  httpServer.server.listen(port, host);
  await once(httpServer.server, 'listening');
  const { address, family, port: actual } = httpServer.server.address() as AddressInfo;
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${actual}`,
    renew: httpServer.renew,
    close: httpServer.close,
  };
}
