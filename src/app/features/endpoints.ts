import type { Server as NetServer } from 'node:net';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { CredentialWatch } from '../../core/auth/credential-watch.ts';
import type { OriginRules } from '../../core/auth/origin-rules.ts';
import type { CallTelemetry } from '../../core/call/call-events.ts';
import type { Endpoint } from '../../core/http/http-context.ts';
import type { AdmissionOptions } from '../../core/http/pipeline/admission.ts';
import type { RequestTracing } from '../../core/http/pipeline/traced-messages.ts';
import type { App, Routes } from '../../core/http/router.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import type { Server } from '../../core/server/server.ts';
import type { Openers, TransportOptions } from './servers.ts';

/** Server cards, and their catalog (docs/server-cards.md). */
export interface CardsFeature {
  /** Adds the cards of all endpoints, at paths that are free. */
  addRoutes(routes: Routes, config: GatewayConfig, served: readonly CardServer[], originRules: OriginRules): void;
  /** Makes what learns from a server's answers how the server introduces itself. */
  createIntroduction(): NonNullable<Server['introduction']>;
}

/** A server that a card describes. */
export interface CardServer {
  readonly config: ServerConfig;
  readonly server: Server;
  /** Undefined while it is unknown. */
  readonly era: Era | undefined;
}

/** Clients of HTTP+SSE (2024-11-05). */
export interface LegacySseFeature {
  /** Adds the stream of a server, and the endpoint for messages. */
  addRoutes(app: App, paths: LegacySsePaths, options: LegacySseRouteOptions): void;
}

/** Where the endpoints of HTTP+SSE are. */
export interface LegacySsePaths {
  readonly streamPath: string;
  readonly messagesPath: string;
  /** The URL at which clients reach the gateway; undefined if the operator has not named it. */
  readonly publicUrl: string | undefined;
}

/** Options of the endpoints of HTTP+SSE. */
export interface LegacySseRouteOptions extends AdmissionOptions {
  readonly sessions: Sessions;
  readonly watch: CredentialWatch;
  readonly maxDepth: number;
  readonly heartbeatMs: number;
  readonly slowReaderMs: number;
  readonly reconnectDelayMs: number;
  readonly sseOpenMs: number;
}

/** Clients and servers of WebSocket (docs/websocket.md). */
export interface WebSocketFeature {
  createEndpoint(options: WebSocketEndpointOptions): WebSocketEndpoint;
  /** Answers requests without an upgrade to the path of a WebSocket endpoint. */
  readonly answerWithoutUpgrade: Endpoint;
  openers(options: TransportOptions): Openers;
}

/** Options of the WebSocket endpoints of a gateway. */
export interface WebSocketEndpointOptions {
  readonly sessions: Sessions;
  readonly maxDepth: number;
  readonly heartbeatMs: number;
  readonly slowReaderMs: number;
  /** Limit of one message of a client. */
  readonly maxBodyBytes: number;
  /** Ends a connection when the credentials of its handshake expire. */
  readonly watch: CredentialWatch;
  readonly calls: CallTelemetry | undefined;
  readonly tracePosts: RequestTracing | undefined;
  /** How long a client may take for its first message, and between a failed `initialize` and the next. */
  readonly initializeTimeoutMs: number;
}

/** The WebSocket endpoints of a gateway. */
export interface WebSocketEndpoint {
  /** Sets the servers, by the path of their endpoint, and the rules for their clients. Open connections continue. */
  route(servers: ReadonlyMap<string, AdmissionOptions>): void;
  /** Answers the upgrade requests of this HTTP server that want a WebSocket; others are served without an upgrade. */
  attach(http: NetServer): void;
  /** Closes the open connections; resolves when none is left, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
}
