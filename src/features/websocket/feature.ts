import type { WebSocketFeature } from '../../app/features/endpoints.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { connectTimeoutMs } from '../../core/backend/upstream-tls.ts';
import { openWebSocket } from './backend/websocket-backend.ts';
import { createWebSocketEndpoint, webSocketOnly } from './endpoint/websocket.ts';

export const webSocket: WebSocketFeature = {
  createEndpoint: createWebSocketEndpoint,
  answerWithoutUpgrade: webSocketOnly,
  openers({ config, gateway, tls, tokens, answerTimeoutMs, onStarted }) {
    const { address, headers } = config;
    if (!('url' in address)) throw new Error('the server has no URL');
    const { url } = address;
    const { heartbeatMs } = gateway.sse;
    const { maxQueuedBytes } = gateway.derived;
    const options = {
      connectTimeoutMs,
      maxQueuedBytes,
      url,
      headers,
      tls,
      tokens,
      answerTimeoutMs,
      onStarted,
      heartbeatMs,
    };
    const open: OpenBackend = (events, opening) => openWebSocket(options, events, opening);
    return { open, openModern: undefined, isOverHttp: false };
  },
};
