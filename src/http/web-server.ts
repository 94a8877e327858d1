import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server } from 'node:net';
import { contain, reportFault } from '../boundary.ts';
import { answerBrokenRequests } from './broken-requests.ts';
import { endAsInternal, respondWithFault } from './respond.ts';

/** A certificate with its chain, and its key, both in PEM. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

/** What an HTTP server is made of. */
export interface WebServerOptions {
  /** Without one it is plain HTTP. */
  readonly certificate: ServerCertificate | undefined;
  /** In which a request must have arrived whole, and a TLS handshake be done. */
  readonly bodyTimeoutMs: number;
  /** How long a connection stays open without a request. */
  readonly connectionIdleMs: number;
  readonly maxConnections: number;
}

/** The server below the endpoints. */
export interface WebServer {
  readonly server: Server;
  /** Connections made from now on get this one; those that stand go on. */
  renew(certificate: ServerCertificate): void;
  /** Takes no more connections; resolves when none is left, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
}

/** What holds for every connection with TLS (RFC 9325, section 3.1.1); HTTP/2 is not spoken. */
const tlsRules = { minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;

/** A write to a response that is over would otherwise be an exception of the process. */
const reportBrokenResponse = (cause: unknown): void => reportFault('request', cause);

/** An HTTP/1.1 server, with TLS if it has a certificate. What Node.js would refuse without a word gets one of the catalogue. */
export function createWebServer(options: WebServerOptions, listener: RequestListener): WebServer {
  const { certificate, bodyTimeoutMs, connectionIdleMs, maxConnections } = options;
  const times = {
    requestTimeout: bodyTimeoutMs,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: connectionIdleMs,
    requireHostHeader: false, // the guards require it, and say so
  };
  const tls =
    certificate && createTlsServer({ ...times, ...tlsRules, ...certificate, handshakeTimeout: bodyTimeoutMs });
  const server = tls ?? createServer(times);
  server.on('request', (incoming, outgoing) => {
    outgoing.on('error', reportBrokenResponse);
    contain(
      'request',
      () => listener(incoming, outgoing),
      () => endAsInternal(outgoing),
    );
  });
  server.on('checkExpectation', (_incoming, outgoing) =>
    contain('request', () => respondWithFault(outgoing, 'bad_expectation')),
  );
  answerBrokenRequests(server);
  // Node.js drops what follows the first 1,000 headers, and with it what the guards look at; their size is bounded anyway.
  server.maxHeadersCount = 0;
  server.maxConnections = maxConnections;
  return {
    server,
    renew: (renewed) => tls?.setSecureContext({ ...tlsRules, ...renewed }),
    async close(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}
