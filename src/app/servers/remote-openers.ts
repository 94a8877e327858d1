import type { GatewayConfig, RemoteServer } from '../../config/config.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { createTransportDetector, type WebTransport } from '../../core/backend/detect-transport.ts';
import type { UpstreamTls } from '../../core/backend/upstream-tls.ts';
import type { UpstreamTokens } from '../../core/backend/upstream-tokens.ts';
import type { ServerEvent } from '../../core/server/server-events.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { openModernHttp } from '../../features/remote/modern-http/modern-http-backend.ts';
import { openSocket } from '../../features/remote/socket/socket-backend.ts';
import { openSse } from '../../features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../features/remote/streamable-http/streamable-http-backend.ts';
import { openWebSocket } from '../../features/websocket/backend/websocket-backend.ts';
import { readTlsFiles } from '../tls-files.ts';
import { version } from '../version.ts';

/** The functions that open the backends of a server. */
export interface Openers {
  /** Opens a backend for a session. */
  readonly open: OpenBackend;
  /** Opens the backend that modern clients share; undefined if the transport has no modern era. */
  readonly openModern: OpenBackend | undefined;
  /** True for a server at an http(s):// URL, where `openModern` opens another kind of backend than `open`. */
  readonly isOverHttp: boolean;
}

/**
 * The share of the start's time limit that a server has for its first answer. The rest is for the reason: a session that
 * gives its server up at the limit could not tell it.
 */
const answerShare = 0.9;

/** A host that accepts no connection within this time is down. SYN packets are repeated after 1, 3 and 7 s. */
export const connectTimeoutMs = 10_000;

/** An HTTP+SSE server sends its endpoint at once, so more time than for a connection would not help. */
const longestEndpointMs = connectTimeoutMs;

/** A server accepts a notification before it works on it. A minute is the usual limit of proxies before it. */
const longestPostMs = 60_000;

/**
 * Creates the openers of a remote server. Throws an error for the operator if a certificate or key cannot be used, so
 * that the fault appears at the start and not at the first session.
 * @param tokens the tokens that all connections to the server share; undefined if it needs none
 */
export function remoteOpeners(
  config: RemoteServer,
  { sse, timeouts: { requestIdleMs }, derived: { maxQueuedBytes, maxSharedCalls } }: GatewayConfig,
  emit: Emit<ServerEvent>,
  onStarted: () => void,
  tokens: UpstreamTokens | undefined,
): Openers {
  const { name: server, address, headers, timeouts } = config;
  const common = { connectTimeoutMs, maxQueuedBytes };
  const answerTimeoutMs = Math.ceil(timeouts.startMs * answerShare);
  // The rest of the time is for the answer.
  const endpointTimeoutMs = Math.min(longestEndpointMs, Math.ceil(timeouts.startMs / 2));
  const postTimeoutMs = Math.min(longestPostMs, requestIdleMs);
  if (address.transport === 'view') throw new Error('a view has no connection of its own');
  if (!('url' in address)) {
    const open: OpenBackend = (events) => openSocket({ ...common, onStarted, address }, events);
    return { open, openModern: open, isOverHttp: false };
  }
  const { url, transport } = address;
  const tls = readServerTls(config);
  const web = { ...common, url, headers, tls, tokens };
  if (transport === 'ws') {
    const open: OpenBackend = (events, opening) =>
      openWebSocket({ ...web, answerTimeoutMs, onStarted, heartbeatMs: sse.heartbeatMs }, events, opening);
    return { open, openModern: undefined, isOverHttp: false };
  }
  const onPostFailed = (detail: string, dropped: number): void =>
    emit({ type: 'server-post-failed', server, detail, dropped });
  const passesChallenges = config.auth === 'upstream';
  const http = { ...web, postTimeoutMs, passesChallenges, onPostFailed };
  const open: Readonly<Record<WebTransport, OpenBackend>> = {
    http: (events, opening) => openStreamableHttp(http, events, opening),
    sse: (events, opening) => openSse({ ...http, answerTimeoutMs, onStarted, endpointTimeoutMs }, events, opening),
  };
  if (transport === 'sse') return { open: open.sse, openModern: undefined, isOverHttp: false };
  const modern = { ...http, version, maxRequests: maxSharedCalls };
  const onFound = (found: WebTransport): void => emit({ type: 'transport-found', server, transport: found });
  const onToolsHidden = (names: readonly string[]): void => emit({ type: 'tools-hidden', server, names });
  return {
    open: transport === 'http' ? open.http : createTransportDetector({ open, onFound }),
    openModern: (events) => openModernHttp({ ...modern, onToolsHidden }, events),
    isOverHttp: true,
  };
}

/** Reads the certificates for connections to a server; none for a server without TLS. Throws as `readTlsFiles` does. */
export function readServerTls({ address, tls }: RemoteServer): UpstreamTls {
  const protocol = address !== undefined && 'url' in address ? address.url.protocol : '';
  return protocol === 'https:' || protocol === 'wss:' ? readTlsFiles('tls', tls) : {};
}
