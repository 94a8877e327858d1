import type { OpenBackend } from '../../backend/backend.ts';
import { createTransportDetector, type WebTransport } from '../../backend/detect-transport.ts';
import { openModernHttp } from '../../backend/modern-http/modern-http-backend.ts';
import { openSocket } from '../../backend/socket/socket-backend.ts';
import { openSse } from '../../backend/sse/sse-backend.ts';
import { openStreamableHttp } from '../../backend/streamable-http/streamable-http-backend.ts';
import type { UpstreamTls } from '../../backend/upstream-tls.ts';
import { openWebSocket } from '../../backend/websocket/websocket-backend.ts';
import type { GatewayConfig, RemoteServer } from '../../config/config.ts';
import { readTlsFiles } from '../tls-files.ts';
import { version } from '../version.ts';
import type { ServerListeners } from './server-listeners.ts';

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
 * Creates the openers of a remote server. Throws an error for the operator if a certificate or key cannot be used, so
 * that the fault appears at the start and not at the first session.
 */
export function remoteOpeners(
  { address, headers, connectTimeoutMs, endpointTimeoutMs, postTimeoutMs, upstreamIdleMs, ...files }: RemoteServer,
  { maxLineBytes, maxQueuedBytes, maxSharedCalls, keepAliveMs }: GatewayConfig,
  { onStarted, onPostFailed, onTransport, onToolsHidden }: ServerListeners,
): Openers {
  const common = { connectTimeoutMs, maxLineBytes, maxQueuedBytes };
  const listeners = { onStarted: () => onStarted?.() };
  if (!('url' in address)) {
    const open: OpenBackend = (events) => openSocket({ ...common, ...listeners, address }, events);
    return { open, openModern: open, isOverHttp: false };
  }
  const { url, transport } = address;
  const tls = url.protocol === 'https:' || url.protocol === 'wss:' ? readUpstreamTls(files) : {};
  const web = { ...common, url, headers, tls };
  if (transport === 'ws') {
    const open: OpenBackend = (events, opening) =>
      openWebSocket({ ...web, ...listeners, keepAliveMs }, events, opening);
    return { open, openModern: undefined, isOverHttp: false };
  }
  const onFailed = (detail: string, dropped: number): void => onPostFailed?.(detail, dropped);
  const http = { ...web, postTimeoutMs, idleTimeoutMs: upstreamIdleMs, onPostFailed: onFailed };
  const open: Readonly<Record<WebTransport, OpenBackend>> = {
    http: (events, opening) => openStreamableHttp(http, events, opening),
    sse: (events, opening) => openSse({ ...http, ...listeners, endpointTimeoutMs }, events, opening),
  };
  if (transport === 'sse') return { open: open.sse, openModern: undefined, isOverHttp: false };
  const modern = { ...http, version, maxRequests: maxSharedCalls };
  return {
    open:
      transport === 'http' ? open.http : createTransportDetector({ open, onFound: (found) => onTransport?.(found) }),
    openModern: (events) => openModernHttp({ ...modern, onToolsHidden: (names) => onToolsHidden?.(names) }, events),
    isOverHttp: true,
  };
}

const readUpstreamTls = ({
  upstreamCa,
  upstreamCert,
  upstreamKey,
}: Pick<RemoteServer, 'upstreamCa' | 'upstreamCert' | 'upstreamKey'>): UpstreamTls =>
  readTlsFiles({
    ca: ['upstreamCa', upstreamCa],
    cert: ['upstreamCert', upstreamCert],
    key: ['upstreamKey', upstreamKey],
  });
