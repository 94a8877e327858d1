import type { CommandObserver } from '../command-observer.ts';
import type { LogLimits } from '../event-log.ts';
import type { Store } from '../store.ts';
import { createCommands } from './connection/commands.ts';
import { type ConnectOptions, createConnector } from './connection/connect.ts';
import { createReaders } from './connection/readers.ts';
import { createRedisInstances } from './instances/redis-instances.ts';
import { createKeys } from './keys.ts';
import { createLifetimes } from './lifetimes.ts';
import { createRedisLog } from './log/redis-log.ts';
import { createRedisRecords } from './records/redis-records.ts';
import { createRunScript } from './script.ts';
import { createRedisChanges } from './shared/redis-changes.ts';
import { createRedisOutcomes } from './shared/redis-outcomes.ts';
import { createRedisOwners } from './shared/redis-owners.ts';
import { createRedisRates } from './shared/redis-rates.ts';
import { createRedisSecrets } from './shared/redis-secrets.ts';

/**
 * The longest wait before the next attempt to connect, and its part of a lease: an owner is back before another instance,
 * whose connection has to be healthy for a lease before that, takes over what it owns (P7).
 */
const maxReconnectMs = 2_000;
const reconnectsPerLease = 3;

/** Where the store is, and its limits and times. */
export interface RedisStoreOptions extends ConnectOptions {
  /** What all keys begin with; gateways share sessions if they have the same. */
  readonly prefix?: string;
  readonly limits: LogLimits;
  /** For how long an instance holds its lease after a renewal. */
  readonly leaseMs?: number;
  /** For how long a session is kept that nobody touches. */
  readonly recordTtlMs?: number;
  /** After which time a command without an answer is an unknown outcome. */
  readonly commandTimeoutMs?: number;
  /** What a mailbox may hold unread (P8). */
  readonly mailboxMaxBytes?: number;
  /** Told of each fault of a connection, for logs; never with the contents of a message. */
  readonly onError?: (cause: unknown) => void;
  /** Told of each command but those that block, for metrics. */
  readonly observer?: CommandObserver | undefined;
}

/**
 * A store in Redis, 6.2 or newer, for any number of instances: one server, one found by sentinels, or a cluster. Returns at
 * once and connects by itself, for ever. Throws a TypeError for a URL or prefix that cannot be.
 */
export function createRedisStore(options: RedisStoreOptions): Store {
  const {
    prefix = 'gangway',
    limits,
    leaseMs = 6_000,
    recordTtlMs = 3_600_000,
    commandTimeoutMs = 1_000,
    mailboxMaxBytes = 64 * 1024 * 1024,
    onError = () => undefined,
  } = options;
  const keys = createKeys(prefix);
  const lifetimes = createLifetimes(limits, recordTtlMs, leaseMs);
  const connect = createConnector(options, Math.min(maxReconnectMs, leaseMs / reconnectsPerLease));

  const commands = createCommands({
    client: connect(commandTimeoutMs),
    commandTimeoutMs,
    // A command that writes: a replica, which would answer a PING, refuses it.
    probe: (client) => client.pexpire(keys.storeGeneration, lifetimes.storeGenerationMs),
    onError,
    observer: options.observer,
  });
  const runScript = createRunScript(commands);
  const readers = createReaders(() => connect(undefined), onError);
  const { run, health } = commands;
  const instances = createRedisInstances({ run, runScript, readers, keys, lifetimes, leaseMs, mailboxMaxBytes });
  const changes = createRedisChanges({ run, runScript, readers, keys, lifetimes });
  health.onRecovered(() => {
    readers.reset();
    instances.rewind();
  });

  return {
    log: createRedisLog({ runScript, keys, limits, lifetimes }),
    sessions: createRedisRecords({ run, runScript, keys, lifetimes }),
    instances,
    secrets: createRedisSecrets({ run, keys, lifetimes }),
    changes,
    outcomes: createRedisOutcomes({ run, runScript, keys }),
    owners: createRedisOwners({ run, keys }),
    rates: createRedisRates({ runScript, keys }),
    healthyForMs: health.healthyForMs,
    onRecovered: health.onRecovered,
    async close() {
      changes.close();
      commands.close();
      readers.close();
    },
  };
}
