import type { GatewayConfig } from '../config/config.ts';

/** BRIDGE: the values under the names that the rooms give them. */
export const roomOptions = ({ limits, timeouts, sse, replay, derived }: GatewayConfig) => ({
  ...timeouts,
  ...derived,
  requestMaxMs: timeouts.requestTotalMs,
  keepAliveMs: sse.heartbeatMs,
  retryMs: sse.reconnectDelayMs,
  upgradeAfterMs: sse.streamAfterMs,
  streamMaxAgeMs: sse.maxAgeMs,
  maxSessions: limits.total.sessions,
  maxConnections: limits.total.connections,
  maxCalls: limits.session.requests,
  maxBodyBytes: limits.request.bodyBytes,
  maxLineBytes: limits.server.lineBytes,
  /** Each level of nesting costs memory for as long as the message is read, whatever its size (P8). */
  maxDepth: 100,
  /** A client that closed its GET stream may come back within this time. Then its process is freed for others. */
  abandonedMs: 300_000,
  logMaxEvents: replay.maxEvents,
  logMaxBytes: replay.maxSizeBytes,
});
