import type { Logger } from 'pino';
import type { Authenticate } from '../auth/identity.ts';
import type { CreateInterceptor } from '../backend/link/link.ts';
import type { Endpoint } from '../http/http-context.ts';
import type { App } from '../http/router.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Readiness } from '../registry/sessions.ts';
import type { SessionSnapshot } from '../session/session.ts';
import type { SessionName } from '../session/session-events.ts';
import type { Changes } from '../store/shared/shared-data.ts';
import type { Meter } from '../util/telemetry/meter.ts';
import type { GatewaySink } from './gateway-events.ts';
import type { FailureDetails } from './health/server-failure.ts';
import type { MonitoredStatus } from './health/server-health.ts';
import type { MetricKey } from './metrics/catalogue.ts';

/**
 * The one way by which the console reaches a gateway. It receives every event, sees the messages of backends, and opens
 * its page. A gateway without it has no status page, and is complete otherwise.
 */
export interface ConsoleHook {
  readonly receive: GatewaySink;
  /** Finds the meter for a metric that the console reads too; undefined for all other metrics. */
  meter(name: MetricKey): Meter | undefined;
  /** The interceptor of a server's backends that sessions open, and of those that modern clients share. */
  observe(server: string): CreateInterceptor;
  /** Opens the status page of a gateway that listens. */
  open(parts: ConsoleParts): Promise<StatusPage>;
}

/** The parts of a gateway that the status page shows and uses. */
export interface ConsoleParts {
  readonly logger: Logger;
  readonly version: string;
  readonly maxSessions: number;
  /** The reconnect delay that the gateway gives its clients, in milliseconds. */
  readonly retryMs: number;
  /** Authenticates operators; undefined without authentication. Clients then need no token either. */
  readonly operators: Authenticate | undefined;
  /** True if only this machine can reach the operator port. */
  readonly isOnLoopback: boolean;
  /** The URL of the gateway for clients: `http://127.0.0.1:8080` */
  readonly base: string;
  /** Announces changes between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  /** The readiness, as in `/readyz`. */
  readiness(): Readiness;
  store(): StoreState;
  /** The health of the servers, in the order of the page. */
  health(): readonly MonitoredStatus[];
  /** What the operator may read about the last failure of a server. */
  failureDetails(server: string): FailureDetails | undefined;
  servers(): readonly ConsoleServer[];
  /** The number of sessions. */
  sessionCount(): number;
  sessions(): readonly ConsoleSession[];
  /** The tasks whose calls run at this instance, newest first. */
  tasks(): readonly ConsoleTask[];
  /** Cancels a task that runs at this instance, by its short name. False if there is none. */
  cancelTask(name: string): boolean;
  /** The open streams and WebSockets of clients at this instance, by server. */
  openStreams(): ReadonlyMap<string, number>;
  /** Measures the memory of these processes and their children. */
  usageOf(groups: ReadonlySet<number>): Promise<readonly GroupMemory[]>;
  /** Answers requests of the playground like those of clients. */
  readonly playground: Endpoint;
  /** Checks a server as `mcp-gangway check` does; undefined if there is no such server. */
  check(server: string): Promise<ServerCheck | undefined>;
  /** Drains and ends this instance (P9). */
  drain(): void;
}

/** Where sessions and events are kept, and whether that place answers. */
export interface StoreState {
  readonly kind: 'memory' | 'files' | 'redis';
  readonly isUp: boolean;
  /** The directory of the store in files. */
  readonly directory?: string | undefined;
  /** The addresses of other instances that share the store and do not answer this one. */
  readonly unreachable?: readonly string[];
  /** The sessions in files that no client has used since the start; absent for none. */
  readonly waiting?: number;
}

/** What a check of a server has found (docs/health.md). */
export interface ServerCheck {
  readonly isFine: boolean;
  /** The last one is the summary. */
  readonly results: readonly CheckedResult[];
}

/** One result of a check: a sentence, and the lines that belong to it. */
export interface CheckedResult {
  readonly kind: 'ok' | 'fail' | 'note' | 'summary';
  readonly text: string;
  readonly details: readonly string[];
}

/** A configured server that is in use. */
export interface ConsoleServer {
  /** True if a client may send the server a token of its own, even where the gateway needs none. */
  readonly takesTokens: boolean;
  readonly name: string;
  /** The path of its endpoint. */
  readonly path: string;
  /** The calls of modern clients in flight. */
  readonly callsInFlight: number;
  /** Ends the processes that are kept for the next session, and replaces the spare backends. */
  renewUnused(): void;
}

/** A session of this instance. */
export interface ConsoleSession {
  readonly name: SessionName;
  readonly principal: Principal;
  readonly server: { readonly authorizesClients?: boolean | undefined };
  readonly protocolVersion: string;
  readonly snapshot: SessionSnapshot;
  end(reason: 'operator' | 'client_gone'): Promise<void>;
}

/** A call that has become a task of the gateway, and runs at this instance. */
export interface ConsoleTask {
  /** A short name, which is no use to clients. */
  readonly name: string;
  readonly server: string;
  readonly tool: string | undefined;
  /** The user; undefined without authentication. */
  readonly user: string | undefined;
  readonly status: string;
  /** By the system's clock, in milliseconds. */
  readonly createdAt: number;
}

/** The memory of one process. `group` is the process that the gateway has started. */
export interface GroupMemory {
  readonly group: number;
  readonly residentBytes: number;
}

/** The status page of a gateway. */
export interface StatusPage {
  /** Returns its URL on the admin server, without a secret; undefined where access is denied to everyone. */
  urlAt(adminUrl: string): string | undefined;
  /** Returns the same URL with the secret of this start, if there is one. It is for the operator only. */
  secretUrlAt(adminUrl: string): string | undefined;
  /** True for a path that the page may request. */
  has(path: string): boolean;
  /** Adds its endpoints. */
  addRoutes(app: App): void;
  close(): Promise<void>;
}
