// src/features/redis: the store of any number of instances, in Redis, with one Lua script for each atomic change.
import type { LogLimits } from '../../core/store/event-log.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import type { StoreTelemetry } from '../../core/store/store-events.ts';
import { type RecordVersions, recordVersions } from './codec.ts';
import { createCommands } from './connection/commands.ts';
import { type ConnectOptions, createConnector } from './connection/connect.ts';
import { withoutArguments } from './connection/reply-error.ts';
import { createRedisInstances } from './instances/redis-instances.ts';
import { createKeys } from './keys.ts';
import { createRedisLog } from './log/redis-log.ts';
import { createRedisRecords } from './records/redis-records.ts';
import { createLifetimes } from './redis-access.ts';
import { createRunScript } from './script.ts';
import { createRedisChanges } from './shared/redis-changes.ts';
import { createRedisRates, createRedisReservations, createRedisValues } from './shared/redis-values.ts';

/**
 * The longest wait before the next attempt to connect, also as a fraction of a lease. Another instance may take
 * sessions over only after its own connection has been healthy for a lease. Their owner has reconnected by then (P7).
 */
const maxReconnectMs = 2_000;
const reconnectsPerLease = 3;

/** The address of the store, and its limits and times. */
export interface RedisStoreOptions extends ConnectOptions {
  /** The beginning of all keys. Gateways with the same prefix share sessions. */
  readonly prefix?: string;
  readonly limits: LogLimits;
  /** The duration of a lease after a renewal. */
  readonly leaseMs?: number;
  /** For how long an unused session is kept. */
  readonly recordTtlMs?: number;
  /** The time after which a command without an answer has an unknown outcome. */
  readonly commandTimeoutMs?: number;
  /** The versions of session records; those of this build if absent. Tests simulate other builds. */
  readonly versions?: RecordVersions;
  /** Receives each fault of a connection, for logs, without the contents of messages. */
  readonly onError?: (cause: unknown) => void;
  /** Receives the outcome of each command that does not block, for metrics. */
  readonly telemetry?: StoreTelemetry | undefined;
}

/**
 * Makes a store in Redis 6.2 or newer for any number of instances. Redis may be one server, a server found by
 * sentinels, or a cluster. Returns at once; the store connects by itself and reconnects for ever. Throws a TypeError
 * for an invalid URL or prefix.
 */
export function createRedisStore(options: RedisStoreOptions): ClusterStore {
  const {
    prefix = 'gangway',
    limits,
    leaseMs = 6_000,
    recordTtlMs = 3_600_000,
    commandTimeoutMs = 1_000,
    onError = () => undefined,
    versions = recordVersions,
  } = options;
  const keys = createKeys(prefix);
  const lifetimes = createLifetimes(limits, recordTtlMs, leaseMs);
  const { connect, follow } = createConnector(options, Math.min(maxReconnectMs, leaseMs / reconnectsPerLease));

  const client = connect(commandTimeoutMs);
  const unfollow = follow(client);
  const commands = createCommands({
    client,
    commandTimeoutMs,
    // A write, since a replica refuses it but would answer a PING.
    probe: (client) => client.pexpire(keys.storeGeneration, lifetimes.storeGenerationMs),
    onError,
    telemetry: options.telemetry,
  });
  const { run, health } = commands;
  const access = { run, runScript: createRunScript(commands), keys, lifetimes };
  const changes = createRedisChanges(access, () => {
    const reader = connect(undefined);
    return reader.on('error', (cause: Error) => onError(withoutArguments(cause)));
  });
  health.onRecovered(changes.reset);

  return {
    log: createRedisLog(access, limits),
    sessions: createRedisRecords(access, versions),
    instances: createRedisInstances(access, leaseMs),
    values: createRedisValues(access),
    changes,
    rates: createRedisRates(access),
    reservations: createRedisReservations(access),
    healthyForMs: health.healthyForMs,
    onRecovered: health.onRecovered,
    async close() {
      changes.close();
      unfollow();
      commands.close();
    },
  };
}
