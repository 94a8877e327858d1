// src/features/redis: the store of any number of instances, in Redis, with one Lua script for each atomic change.
import type { RedisStoreSettings } from '../../app/features/stores.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import { type RecordVersions, recordVersions } from './codec.ts';
import { Commands } from './connection/commands.ts';
import { createConnector } from './connection/connect.ts';
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
export interface RedisStoreOptions extends RedisStoreSettings {
  /** The versions of session records; those of this build if absent. Tests simulate other builds. */
  readonly versions?: RecordVersions;
}

/**
 * Makes a store in Redis 6.2 or newer for any number of instances. Redis may be one server, a server found by
 * sentinels, or a cluster. Returns at once; the store connects by itself and reconnects for ever. Throws a TypeError
 * for an invalid URL or prefix.
 */
export function createRedisStore(options: RedisStoreOptions): ClusterStore {
  const { limits, leaseMs, recordTtlMs, commandTimeoutMs, onError, versions = recordVersions } = options;
  const keys = createKeys(options.prefix);
  const lifetimes = createLifetimes(limits, recordTtlMs, leaseMs);
  const { connect, follow } = createConnector(options, Math.min(maxReconnectMs, leaseMs / reconnectsPerLease));

  const client = connect(commandTimeoutMs);
  const unfollow = follow(client);
  const commands = new Commands({
    client,
    commandTimeoutMs,
    // A write, since a replica refuses it but would answer a PING.
    probe: (client) => client.pexpire(keys.storeGeneration, lifetimes.storeGenerationMs),
    onError,
    telemetry: options.telemetry,
  });
  const access = { run: commands.run, runScript: createRunScript(commands), keys, lifetimes };
  const changes = createRedisChanges(access, () => {
    const reader = connect(undefined);
    return reader.on('error', (cause: Error) => onError(withoutArguments(cause)));
  });
  commands.onRecovered(changes.reset);

  return {
    log: createRedisLog(access, limits),
    sessions: createRedisRecords(access, versions),
    instances: createRedisInstances(access, leaseMs),
    values: createRedisValues(access),
    changes,
    rates: createRedisRates(access),
    reservations: createRedisReservations(access),
    healthyForMs: () => commands.healthyForMs,
    onRecovered: (listener) => commands.onRecovered(listener),
    async close() {
      changes.close();
      unfollow();
      commands.close();
    },
  };
}
