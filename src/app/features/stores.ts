import type { GatewayConfig } from '../../config/config.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import type { UpstreamTls } from '../../core/backend/upstream-tls.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { GatewayEvent } from '../../core/ops/gateway-events.ts';
import type { ClusterOfSessions } from '../../core/registry/sessions.ts';
import type { LogLimits } from '../../core/store/event-log.ts';
import type { MemoryLimits } from '../../core/store/memory/memory-tables.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import type { StoreEvent, StoreTelemetry } from '../../core/store/store-events.ts';
import type { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';

/** Explains why something does not work, and the remedy. */
export interface Explanation {
  readonly detail: string;
  readonly help: string;
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
  readonly emit: Emit<StoreEvent>;
}

/** A store in the memory of this process, with files from which the next process continues. */
export interface StoreInFiles extends ClusterStore {
  /** How many sessions the files have now, also those that no client has used since the start. */
  sessionCount(): number;
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

/** Sessions in Redis, which several instances share (docs/scaling.md). */
export interface RedisFeature {
  /** Returns when the store may be used. It connects by itself, and reconnects for ever. */
  open(options: RedisStoreSettings): Promise<ClusterStore>;
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
export interface RedisStoreSettings extends RedisConnection {
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
  /** Where others reach each instance that holds a lease under this prefix now. */
  readonly addresses: readonly string[];
}

/** Instances that share a store, and sessions that outlive their instance (docs/scaling.md). */
export interface ClusterFeature {
  /** Returns how the sessions of this instance join the other instances. */
  connect(options: ClusterConnection): ClusterOfSessions;
  /** Names the other instances that can reach this one. */
  describeLink(config: Pick<GatewayConfig, 'cluster'>): string;
  /** Tries to connect to running instances. Returns the addresses to which no way leads from here. */
  findUnreachable(published: readonly string[], environment: Environment): Promise<readonly string[]>;
}

/** What an instance needs to join others. */
export interface ClusterConnection {
  readonly config: GatewayConfig;
  readonly environment: Environment;
  readonly store: ClusterStore;
  /** The secrets that instances share; undefined if no other instance can share the store. */
  readonly secrets: StateKeys | undefined;
  readonly limits: ClusterLimits;
  readonly emit: Emit<GatewayEvent>;
  /** Instances on this host cannot use sockets. */
  onUnable(detail: string): void;
}

/** Times and sizes of a cluster; `docs/reference/configuration.md` explains each. */
export interface ClusterLimits {
  readonly leaseMs: number;
  readonly leaseRenewMs: number;
  readonly leaseMarginMs: number;
  readonly storeWaitMs: number;
  readonly reconnectDelayMs: number;
  readonly slowReaderMs: number;
}
