import type { RemoteFeature } from '../../app/features/servers.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { createTransportDetector, type WebTransport } from '../../core/backend/detect-transport.ts';
import { connectTimeoutMs } from '../../core/backend/upstream-tls.ts';
import { createSend } from './http-client/upstream-requests.ts';
import { openModernHttp } from './modern-http/modern-http-backend.ts';
import { openSocket } from './socket/socket-backend.ts';
import { openSse } from './sse/sse-backend.ts';
import { openStreamableHttp } from './streamable-http/streamable-http-backend.ts';

/** An HTTP+SSE server sends its endpoint at once, so more time than for a connection would not help. */
const longestEndpointMs = connectTimeoutMs;

/** A server accepts a notification before it works on it. A minute is the usual limit of proxies before it. */
const longestPostMs = 60_000;

export const remote: RemoteFeature = {
  createSend,
  openers({ config, gateway, version, tls, tokens, answerTimeoutMs, emit, onStarted }) {
    const { name: server, address, headers, timeouts } = config;
    const { maxQueuedBytes, maxSharedCalls } = gateway.derived;
    const common = { connectTimeoutMs, maxQueuedBytes };
    if (address.transport === 'view') throw new Error('a view has no connection of its own');
    if (!('url' in address)) {
      const open: OpenBackend = (events) => openSocket({ ...common, onStarted, address }, events);
      return { open, openModern: open, isOverHttp: false };
    }
    const { url, transport } = address;
    const onPostFailed = (detail: string, dropped: number): void =>
      emit({ type: 'server-post-failed', server, detail, dropped });
    const postTimeoutMs = Math.min(longestPostMs, gateway.timeouts.requestIdleMs);
    const passesChallenges = config.auth === 'upstream';
    const http = { ...common, url, headers, tls, tokens, postTimeoutMs, passesChallenges, onPostFailed };
    // The rest of the time is for the answer.
    const endpointTimeoutMs = Math.min(longestEndpointMs, Math.ceil(timeouts.startMs / 2));
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
  },
};
