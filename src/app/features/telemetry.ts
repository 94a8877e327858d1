import type { Logger } from 'pino';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { Endpoint } from '../../core/http/http-context.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import type { RequestTracing } from '../../core/http/pipeline/traced-messages.ts';
import type { ConsoleHook } from '../../core/ops/console-hook.ts';
import type { GatewaySink } from '../../core/ops/gateway-events.ts';
import type { ServerStatus } from '../../core/ops/health/server-health.ts';
import type { MetricKey } from '../../core/ops/metrics/catalogue.ts';
import type { Readiness } from '../../core/registry/readiness.ts';
import type { PeerStates } from '../../core/registry/session-cluster.ts';
import type { EventLog } from '../../core/store/event-log.ts';
import type { FindMeter } from '../../core/util/telemetry/meter.ts';

/** One line of JSON for each call (docs/audit.md). */
export interface AuditFeature {
  /** Throws an error for the operator if the file cannot be opened. */
  open(options: AuditOptions): AuditLog;
}

/** The settings of the audit log. */
export interface AuditOptions {
  /** `stdout`, `stderr`, or the path of a file. */
  readonly target: string;
  /** The name of this instance. */
  readonly instance: string;
  readonly logger: Logger;
}

/** The audit log of a gateway. */
export interface AuditLog {
  readonly receive: GatewaySink;
  /** Opens the file again, after it was moved away. */
  reopen(): void;
  /** Resolves when the lines are written or cannot be. */
  close(): Promise<void>;
}

/** The status page (docs/status-page.md). */
export interface ConsoleFeature {
  /** @param inspects true if the page shows the contents of messages */
  connect(inspects: boolean): Promise<ConsoleHook>;
}

/** Numbers, and their text for Prometheus (docs/reference/metrics.md). */
export interface MetricsFeature {
  create(): GatewayMetrics;
}

/** The numbers of a gateway. */
export interface GatewayMetrics {
  /** Finds the number that a part of the gateway adds to. */
  readonly meter: FindMeter<MetricKey>;
  /** Counts everything but calls. */
  readonly receive: GatewaySink;
  /** Counts calls. */
  readonly receiveCalls: GatewaySink;
  /** Counts the backends of a server, and their messages. */
  countBackends(server: string): CreateInterceptor;
  /** Counts the events that are appended. */
  countAppends(log: EventLog): EventLog;
  /** The sums of counters or gauges by their first label, the server. */
  sumByServer(keys: readonly MetricKey[]): ReadonlyMap<string, number>;
  /** Reads the state of the gateway whenever somebody reads the numbers. */
  watchInstance(state: InstanceState): void;
  /** Loads what renders the numbers. From then on, it measures the event loop. */
  exposition(): Promise<Exposition>;
}

/** The metrics page for Prometheus. */
export interface Exposition {
  readonly contentType: string;
  /** Renders the current value of all metrics. */
  render(): Promise<string>;
}

/** The state of a running gateway that metrics read. */
export interface InstanceState {
  readonly version: string;
  readonly maxSessions: number;
  /** The names of the servers that are configured now. */
  servers(): readonly string[];
  readiness(): Readiness;
  /** The probe results of the servers; undefined without probes, or before the first result. */
  probes(): Iterable<Pick<ServerStatus, 'server' | 'probe'>>;
  /** The sessions of this instance. */
  sessions(): Iterable<{ readonly name: { readonly server: string }; readonly snapshot: { readonly calls: number } }>;
  /** The number of open client connections. */
  connections(): Promise<number>;
  /** The outcome of the latest reload, or of the start. `succeededAtMs` is since the epoch. */
  lastReload(): { readonly isSuccessful: boolean; readonly succeededAtMs: number };
  /** Where sessions are kept, and whether they can be. */
  store(): { readonly kind: 'memory' | 'files' | 'redis'; readonly isUp: boolean };
  /** The other instances, by whether they answer; undefined if there can be none. */
  peers(): PeerStates | undefined;
}

/** Spans of OpenTelemetry (docs/tracing.md). */
export interface TracingFeature {
  /** Undefined if no SDK was loaded before the gateway. */
  load(version: string): Promise<GatewayTracing | undefined>;
}

/** Creates spans for the requests of clients and for the requests to servers. */
export interface GatewayTracing {
  readonly tracePosts: RequestTracing;
  /** Adds a span for each request that a client causes. */
  traceBackends(server: string): CreateInterceptor;
  /** Exports the remaining spans; resolves when that is done, or after a time limit. */
  flush(): Promise<void>;
}

/** The port for operators (docs/status-page.md). */
export interface OperatorPortFeature {
  /** Rejects if the address cannot be listened on. */
  start(options: AdminServerOptions): Promise<AdminServer>;
}

/** The settings of the admin server. */
export interface AdminServerOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** If set, the server speaks TLS only. */
  readonly certificate: ServerCertificate | undefined;
  /** Allowed host names on a network address, besides those of `isUndottedHost`; empty to allow any. */
  readonly allowHost: readonly string[];
  /** Answers a request whose Host and Origin have been checked. */
  readonly endpoint: Endpoint;
  /** True for paths that a page of this server may request. These endpoints do their own access control. */
  isPagePath(path: string): boolean;
}

/** A running admin server. */
export interface AdminServer {
  /** `http://127.0.0.1:9464` */
  readonly url: string;
  /** Uses this certificate for new connections. */
  renew(certificate: ServerCertificate): void;
  /** Accepts no more connections; resolves when none is left, or after `graceMs`. */
  close(graceMs: number): Promise<void>;
}
