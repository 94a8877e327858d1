// src/core/http: everything between a client's connection and its session.
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Server as NetServer, type Server } from 'node:net';
import { reportFault } from '../util/boundary.ts';
import { PauseWatch } from '../util/timing/time-limit.ts';
import { type Endpoint, HttpContext } from './http-context.ts';
import { answerMalformedRequests } from './malformed-requests.ts';
import { maxPipelined, OpenResponses } from './replies/open-responses.ts';

/** A certificate with its chain, and its key, both in PEM. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

/** How a server requests the certificates of clients. A client without one is served as well. */
export interface ClientCertificates {
  /** The authorities in PEM, by which `TLSSocket.authorized` is decided; undefined to accept any certificate. */
  readonly ca?: Buffer | undefined;
}

/** Options of an HTTP server. */
export interface HttpServerOptions {
  /** Undefined for plain HTTP. */
  readonly certificate: ServerCertificate | undefined;
  /** Undefined to request no certificates of clients. */
  readonly clientCertificates?: ClientCertificates | undefined;
  /** Time limit for a complete request, and for a TLS handshake. */
  readonly bodyTimeoutMs: number;
  /** How long a connection stays open without a request. */
  readonly connectionIdleMs: number;
  readonly maxConnections: number;
  /** How long a client may leave the rest of a complete response unread. */
  readonly slowReaderMs: number;
  /** A connection was closed, because it had more unanswered requests than this. */
  readonly onFlooded?: ((maxRequests: number) => void) | undefined;
}

/** The server below the endpoints. */
export interface HttpServer {
  readonly server: Server;
  /** Sets the certificate of new connections; open connections continue. */
  renew(certificate: ServerCertificate): void;
  /**
   * Accepts no more connections, and lets clients read the answers that are complete. Resolves when they have done so,
   * after `readMs` at the latest.
   */
  finish(readMs: number): Promise<void>;
  /** Accepts no more connections; resolves when none is left, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
}

/** Suites with authenticated encryption (RFC 9325, section 4.2); the default list of Node.js includes CBC suites. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

/** The rules for every TLS connection (RFC 9325, section 3.1.1); HTTP/2 is not supported. */
const tlsRules = { minVersion: 'TLSv1.2', ciphers, ALPNProtocols: ['http/1.1'] } as const;

/** Without a listener, a write to a response that is over would be an uncaught exception. */
const reportBrokenResponse = (cause: unknown): void => reportFault('request', cause);

/**
 * Creates an HTTP/1.1 server, with TLS if it has a certificate. Requests that Node.js would refuse without a body get a
 * fault of the catalogue.
 */
export function createHttpServer(options: HttpServerOptions, endpoint: Endpoint): HttpServer {
  const { certificate, clientCertificates, bodyTimeoutMs, connectionIdleMs, maxConnections } = options;
  const pauses = new PauseWatch();
  const responses = new OpenResponses(options.slowReaderMs, pauses);
  const times = {
    requestTimeout: bodyTimeoutMs,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: connectionIdleMs,
    requireHostHeader: false, // the guards require it, with a fault of the catalogue
  };
  const { ca } = clientCertificates ?? {};
  const rules = { ...tlsRules, ...(ca && { ca }) };
  // Access tokens decide who is let in, so the handshake refuses nobody. The check of a bound token reads the certificate.
  const requests = { requestCert: clientCertificates !== undefined, rejectUnauthorized: false };
  const tls =
    certificate &&
    createTlsServer({ ...times, ...rules, ...requests, ...certificate, handshakeTimeout: bodyTimeoutMs });
  const server = tls ?? createServer(times);
  server.on('request', (incoming, outgoing) => {
    outgoing.on('error', reportBrokenResponse);
    const context = new HttpContext(incoming, outgoing);
    if (!responses.hold(context)) {
      if (!incoming.socket.destroyed) options.onFlooded?.(maxPipelined);
      incoming.socket.destroy();
      return;
    }
    context.contain(() => endpoint(context));
  });
  server.on('checkExpectation', (incoming, outgoing) => {
    const context = new HttpContext(incoming, outgoing);
    context.contain(() => context.respondWithFault('bad_expectation'));
  });
  answerMalformedRequests(server, pauses);
  // Node.js drops headers after the first 1,000, which the guards must see. The size of all headers is bounded anyway.
  server.maxHeadersCount = 0;
  server.maxConnections = maxConnections;
  return {
    server,
    renew: (renewed) => tls?.setSecureContext({ ...rules, ...renewed }),
    async finish(readMs) {
      // `http.Server.close` would also end idle connections, and with them those of clients that still read: Node.js takes
      // a connection for idle once its response is complete.
      NetServer.prototype.close.call(server);
      await responses.whenRead(readMs);
    },
    async close(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
      pauses.close();
    },
  };
}
