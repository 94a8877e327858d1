import type { Logger } from 'pino';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { OfferedNames } from '../../core/backend/offered-names.ts';
import type { Endpoint } from '../../core/http/http-context.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import type { RequestTracing } from '../../core/http/pipeline/traced-messages.ts';
import type { ConsoleHook } from '../../core/ops/console-hook.ts';
import type { GatewaySink } from '../../core/ops/gateway-events.ts';
import type { ServerStatus } from '../../core/ops/health/server-health.ts';
import type { Metric, MetricKey } from '../../core/ops/metrics/catalogue.ts';
import type { PeerStates } from '../../core/registry/session-cluster.ts';
import type { Readiness } from '../../core/registry/sessions.ts';
import type { EventLog } from '../../core/store/event-log.ts';
import type { FindMeter } from '../../core/util/telemetry/meter.ts';

/** One line of JSON for each call (docs/audit.md). */
export interface AuditFeature {
  /** Throws an error for the operator if the file cannot be opened. */
  open(options: AuditOptions): AuditLog;
  /**
   * Checks the chain of files, the oldest first. Rejects if one cannot be read.
   * @param known the hash of a line that the chain must have, or must continue
   */
  verify(files: readonly string[], known?: string): Promise<ChainReport>;
}

/** What is noted about a line of a chain. */
export interface ChainNote {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** What a check of the chain of audit files has found. */
export interface ChainReport {
  readonly lines: number;
  /** The hash of the last line, which the next record will have; null without lines. */
  readonly last: string | null;
  /** The number of lines after the one with the known hash; undefined if no line has it. */
  readonly sinceKnown: number | undefined;
  /** The first line that does not continue the one before; undefined if there is none. */
  readonly broken: ChainNote | undefined;
  readonly notes: readonly ChainNote[];
}

/** The settings of the audit log. */
export interface AuditOptions {
  /** `stdout`, `stderr`, or the path of a file; undefined if records are only sent. */
  readonly target: string | undefined;
  /** Sends each record elsewhere, besides the target. */
  readonly send?: ((record: string) => void) | undefined;
  /** True if each record contains the hash of the one before. */
  readonly isChained: boolean;
  /** Patterns of the names of arguments whose values are hidden, for the calls of a server. */
  hiddenArguments(server: string): readonly string[];
  /** True if the arguments of this tool are recorded. Other sinks may want those of other tools. */
  recordsArguments(server: string, tool: string): boolean;
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
  connect(options: ConsoleOptions): Promise<ConsoleHook>;
}

/** The settings of the console. */
export interface ConsoleOptions {
  /** True if the page shows the contents of messages. */
  readonly inspects: boolean;
  /** The names of tools and prompts that the page may show as called. */
  readonly names: Pick<OfferedNames, 'label'>;
}

/** Numbers, and their text for Prometheus (docs/reference/metrics.md). */
export interface MetricsFeature {
  create(options: MetricsOptions): GatewayMetrics;
}

/** The settings of the metrics. */
export interface MetricsOptions {
  /** The names of tools that are labels; undefined for no metrics of tools. */
  readonly toolNames: Pick<OfferedNames, 'label'> | undefined;
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
  /** Updates all numbers, and returns them. */
  read(): Promise<readonly MetricReading[]>;
  /** Reads the state of the gateway whenever somebody reads the numbers. */
  watchInstance(state: InstanceState): void;
  /** Loads what renders the numbers. From then on, it measures the event loop. */
  exposition(): Promise<Exposition>;
}

/** One metric, and its numbers now. */
export interface MetricReading {
  readonly metric: Pick<Metric, 'name' | 'help' | 'type' | 'bounds'> & {
    /** The unit as UCUM has it; undefined if the name of the metric says it. */
    readonly unit?: string;
  };
  readonly points: readonly MetricPoint[];
}

/** One number of a metric. A histogram has the counts of its buckets, which are not cumulative, and the sum. */
export interface MetricPoint {
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly value: number | { readonly counts: readonly number[]; readonly sum: number };
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

/** Spans of OpenTelemetry (docs/opentelemetry.md). */
export interface TracingFeature {
  /** Undefined if no SDK is loaded: neither by the gateway nor before it. */
  load(version: string): Promise<GatewayTracing | undefined>;
}

/** Export to an OpenTelemetry collector (docs/opentelemetry.md). */
export interface OtlpFeature {
  /** Undefined if no variable names a collector, or if the log says why it cannot be used. */
  load(options: OtlpOptions): Promise<Otlp | undefined>;
}

/** The settings of the export. */
export interface OtlpOptions {
  /** The variables of OpenTelemetry, among others. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The name of this instance. */
  readonly instance: string;
  readonly logger: Logger;
}

/** Where a server is, as far as metrics say it. */
export interface ServerPlace {
  /** `pipe` for a STDIO server, `tcp` or `unix` for others. */
  readonly transport: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

/** The export to a collector. An undefined part belongs to a signal that is not exported. */
export interface Otlp {
  /** Sends a line of the log. */
  readonly writeLine: ((line: string) => void) | undefined;
  /** Sends a record of the audit log. */
  readonly writeAudit: ((record: string) => void) | undefined;
  /** Exports the metrics of a gateway from now on, again and again. */
  readonly exportMetrics: ((source: MetricsSource) => ConventionWatcher) | undefined;
  /** Counts what was sent and what was lost. */
  countWith(meterOf: FindMeter<MetricKey>): void;
  /** Exports what waits. Resolves when that is done, or after this time. */
  flush(withinMs: number): Promise<void>;
}

/** The metrics of a gateway. */
export interface MetricsSource {
  /** The names that are attributes. */
  readonly names: OfferedNames;
  read(): Promise<readonly MetricReading[]>;
}

/** Counts what the conventions for MCP want to know. */
export interface ConventionWatcher {
  /** Counts calls and sessions. */
  readonly receive: GatewaySink;
  /** Measures the requests to a server, and its connections. */
  measure(server: string, place: ServerPlace): CreateInterceptor;
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
