import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { createOriginRules, isHost, isLoopback } from '../../auth/origin-rules.ts';
import { createHttpServer, type ServerCertificate } from '../../http/http-server.ts';
import { respondWithFault } from '../../http/respond.ts';
import { createRequestListener, type FindEndpoint, pathOf } from '../../http/router.ts';

/** What operators reach apart from clients. */
export interface AdminServerOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** With one, the server speaks TLS alone. */
  readonly certificate: ServerCertificate | undefined;
  /** Names by which it may be called on an address of the network, beside those of `isNoDomain`; empty for any. */
  readonly allowHost: readonly string[];
  /** What is served. Host and Origin of its requests have been checked. */
  readonly find: FindEndpoint;
  /** True for the paths of a page that is served here, which may use them; they say by themselves who else may. */
  isOfPage(path: string): boolean;
}

/** The running server. */
export interface AdminServer {
  /** `http://127.0.0.1:9464` */
  readonly url: string;
  /** Connections made from now on get this certificate. */
  renew(certificate: ServerCertificate): void;
  /** Takes no more connections; resolves when none is left, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
}

/** A scraper, a probe and a few people: whoever wants more of it wants to keep the gateway from its work (P8). */
const maxConnections = 100;

/**
 * True for a page that this very server has served: its requests are no other page's. On an address that is not loopback any name
 * may be called, so that is no protection by itself: what acts there needs credentials, which no other page has.
 */
const isOrigin = (origin: string | undefined, host: string | undefined): boolean =>
  origin !== undefined && URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();

/**
 * True for an address and for a name without a dot, as a Prometheus beside the gateway uses them. No web page can have such
 * a name for its own and make it point at this server (DNS rebinding).
 */
function isNoDomain(host = ''): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(name) !== 0 || !name.includes('.');
}

/** Requests here have no bodies, or small ones. */
const bodyTimeoutMs = 10_000;

const connectionIdleMs = 75_000;

/**
 * Starts the HTTP server for operators, apart from that of clients: it can be reached by others, and answers also when the
 * other one has as many connections as it may have. No web page may use it but its own: Host and Origin are checked as at
 * the endpoints (docs/decisions/0042). Rejects with what Node.js says if it cannot listen.
 */
export async function startAdminServer({
  host,
  port,
  certificate,
  allowHost,
  find,
  isOfPage,
}: AdminServerOptions): Promise<AdminServer> {
  const rules = createOriginRules({ host, allowOrigin: [], allowHost: isLoopback(host) ? [] : allowHost });
  const answer = createRequestListener(find, { notFoundReason: 'no_such_admin_path' });
  const listener: RequestListener = (incoming, outgoing) => {
    const { host: name, origin } = incoming.headers;
    const refused = !isHost(name)
      ? 'bad_host'
      : !(rules.allowsHost(name) || (!isLoopback(host) && isNoDomain(name)))
        ? 'host_not_allowed'
        : !rules.allowsOrigin(origin) && !(isOfPage(pathOf(incoming.url ?? '')) && isOrigin(origin, name))
          ? 'origin_not_allowed'
          : undefined;
    if (refused === undefined) answer(incoming, outgoing);
    else respondWithFault(outgoing, refused);
  };
  const web = createHttpServer(
    { certificate, bodyTimeoutMs, connectionIdleMs, maxConnections, hstsMaxAgeS: 0 },
    listener,
  );
  web.server.listen(port, host);
  await once(web.server, 'listening');
  const { address, family, port: actual } = web.server.address() as AddressInfo;
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${actual}`,
    renew: web.renew,
    close: web.close,
  };
}
