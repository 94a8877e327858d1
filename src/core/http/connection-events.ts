import type { Challenge } from '../auth/identity.ts';
import type { Meter } from '../util/telemetry/meter.ts';

/** An event of client connections. */
export type ConnectionEvent = Readonly<
  /** A connection was closed at once, because this many are open. */
  | { type: 'connection-dropped'; maxConnections: number }
  /** A connection was closed, because it had more unanswered requests than this. */
  | { type: 'connection-flooded'; maxRequests: number }
  /** A request was not admitted, because of its headers or its sender. `address` is for the status page only. */
  | { type: 'sender-refused'; server: string; challenge: Challenge; address?: string | undefined }
>;

/** The numbers of open streams and WebSockets of a server's clients. */
export interface ConnectionMeters {
  readonly streams: Meter;
  readonly webSockets: Meter;
}
