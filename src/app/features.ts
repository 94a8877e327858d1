// What features add to a gateway. src/features.ts lists those of this build, a line each.

import type { Logger } from 'pino';
import type { CreateInterceptor } from '../core/backend/link/link.ts';
import type { UpstreamTls } from '../core/backend/upstream-tls.ts';
import type { RequestTracing } from '../core/http/pipeline/traced-messages.ts';
import type { ConsoleHook } from '../core/ops/console-hook.ts';
import type { GatewaySink } from '../core/ops/gateway-events.ts';
import type { ServerStatus } from '../core/ops/health/server-health.ts';
import type { MetricKey } from '../core/ops/metrics/catalogue.ts';
import type { Readiness } from '../core/registry/readiness.ts';
import type { PeerStates } from '../core/registry/session-cluster.ts';
import type { EventLog, LogLimits } from '../core/store/event-log.ts';
import type { MemoryLimits } from '../core/store/memory/memory-tables.ts';
import type { ClusterStore } from '../core/store/store.ts';
import type { StoreEvent, StoreTelemetry } from '../core/store/store-events.ts';
import type { StoreUnavailable } from '../core/store/store-unavailable.ts';
import type { Emit } from '../core/util/telemetry/emit.ts';
import type { FindMeter } from '../core/util/telemetry/meter.ts';

/**
 * The features of a gateway. Each is optional: a gateway without one is complete otherwise. The assembly knows a feature
 * only by this interface, so its folder can be deleted with its line.
 */
export interface Features {
  readonly audit?: AuditFeature;
  readonly console?: ConsoleFeature;
  readonly files?: FilesFeature;
  readonly metrics?: MetricsFeature;
  readonly redis?: RedisFeature;
  readonly tracing?: TracingFeature;
}

/**
 * Returns a feature that an option needs. Throws an error for the operator if this build does not have it.
 * @param option as an operator writes it
 */
export function needed<Feature>(feature: Feature | undefined, option: string): Feature {
  if (feature !== undefined) return feature;
  throw new Error(`This build of the gateway has no support for ${option}. Remove the option, or use a complete build.`);
}

/** Explains why something does not work, and the remedy. */
export interface Explanation {
  readonly detail: string;
  readonly help: string;
}

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
  connect(inspects: boolean): ConsoleHook;
}

/** Sessions in files (docs/store.md). */
export interface FilesFeature {
  /** Rejects with an error for the operator if the directory cannot be used. */
  open(options: FilesOptions): Promise<StoreInFiles>;
  explain(cause: StoreUnavailable): Explanation;
}

/** How the store in files is opened. */
export interface FilesOptions {
  readonly directory: string;
  readonly limits: MemoryLimits;
  /** The longest time before written data are on the disk itself; 0 for before each change is reported as stored. */
  readonly syncMs: number;
  /** The duration of a lease after a renewal. No other instance shares the store, so a lease may be long. */
  readonly leaseMs: number;
  readonly emit: Emit<StoreEvent>;
}

/** A store in the memory of this process, with files from which the next process continues. */
export interface StoreInFiles extends ClusterStore {
  /** What was found in the directory. */
  readonly found: {
    readonly sessions: number;
    /** The size of the files. */
    readonly bytes: number;
    /** How many changes could not be read, because something has damaged the files. */
    readonly damaged: number;
    /** True if the engine had to repair its files. It cannot tell what was lost. */
    readonly isRepaired: boolean;
  };
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

/** Sessions in Redis, which several instances share (docs/scaling.md). */
export interface RedisFeature {
  /** Returns when the store may be used. It connects by itself, and reconnects for ever. */
  open(options: RedisStoreOptions): Promise<ClusterStore>;
  /** Reads the properties of a Redis that an operator wants to know. Rejects with the client's error. */
  inspect(connection: RedisConnection & { readonly prefix: string }): Promise<RedisFindings>;
  /** Reads only `RedisFindings.memoryPolicy`, which is cheap. */
  memoryPolicyOf(connection: RedisConnection): Promise<string | undefined>;
  explain(cause: unknown): Explanation;
}

/** How a Redis is reached. */
export interface RedisConnection {
  readonly url: string;
  readonly tls: UpstreamTls;
  /** The time within which a command must be answered. */
  readonly commandTimeoutMs: number;
}

/** How the store in Redis is opened. */
export interface RedisStoreOptions extends RedisConnection {
  /** The beginning of all keys. Gateways with the same prefix share sessions. */
  readonly prefix: string;
  readonly limits: LogLimits;
  /** The duration of a lease after a renewal. */
  readonly leaseMs: number;
  /** For how long an unused session is kept. */
  readonly recordTtlMs: number;
  /** Receives each fault of a connection, for logs, without the contents of messages. */
  readonly onError: (cause: unknown) => void;
  /** Receives the outcome of each command that does not block, for metrics. */
  readonly telemetry: StoreTelemetry;
}

/** The properties of a Redis that an operator wants to know. */
export interface RedisFindings {
  /** The version that Redis reports; undefined if this user may not run INFO. */
  readonly version: string | undefined;
  /** The median time of a few PINGs. */
  readonly latencyMs: number;
  /** The policy for full memory: `noeviction`, or one that evicts keys. Undefined if this user may not run INFO. */
  readonly memoryPolicy: string | undefined;
  /** How many instances hold a lease under this prefix now. */
  readonly instances: number;
  /** Where the others reach each of them, as far as they have published that. */
  readonly addresses: readonly string[];
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
