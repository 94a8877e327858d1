import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import type { RedisConnection } from '../../../app/features/stores.ts';
import { parseRedisUrl, type RedisTarget } from '../../../config/redis-url.ts';
import type { UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import { backoff } from '../../../core/util/timing/backoff.ts';
import { watchSwitches } from './switch-watch.ts';

/** A client of one server, given by its address or found by sentinels, or of a cluster. */
export type RedisClient = Redis | Cluster;

const connectTimeoutMs = 5_000;
/** How often a cluster's slots are read again. They are also read after each command that could not be delivered. */
const slotsRefreshMs = 5_000;

/**
 * Returns a maker of connections. The URL is parsed here, so a wrong one throws at the start.
 *
 * No command waits in a queue for a connection, and none is sent twice. When a connection is lost, each command without
 * an answer is rejected. The caller then has to find out whether the command was executed (docs/design.md, D11). A
 * connection reconnects for ever.
 *
 * @param maxReconnectMs the longest wait before the next attempt to connect
 */
export function createConnector({ url, tls }: Pick<RedisConnection, 'url' | 'tls'>, maxReconnectMs: number) {
  const target = parseRedisUrl(url);
  // The delay is capped and spread, so that a hundred gateways do not reconnect at the same moment.
  const pauseAfter = backoff({ firstMs: 50, maxMs: maxReconnectMs, spread: [0.5, 1] });
  return {
    connect(commandTimeoutMs: number | undefined): RedisClient {
      const common = commonOptions(target, tls, commandTimeoutMs, pauseAfter);
      if (target.kind === 'cluster') return connectCluster(target, common, pauseAfter);
      if (target.kind === 'sentinel') return new Redis({ ...common, ...sentinelOptions(target, tls, pauseAfter) });
      return new Redis({ ...common, ...target.hosts[0] });
    },
    /** Makes a connection follow the sentinels, if there are any, also while its master lives. Returns the end of that. */
    follow(client: RedisClient): () => void {
      const common = watchOptions(target, tls, pauseAfter);
      const hosts = target.kind === 'sentinel' ? target.hosts : [];
      const sentinels = hosts.map((host) => new Redis({ ...common, ...host }));
      return watchSwitches(client, target.masterName, sentinels);
    },
  };
}

/** Returns the milliseconds to wait after an attempt. */
type PauseAfter = (attempt: number) => number;

function commonOptions(
  { isTls, username, password, db }: RedisTarget,
  tls: UpstreamTls,
  commandTimeout: number | undefined,
  pauseAfter: PauseAfter,
) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isTls && { tls: { ...tls } }),
    // A connection without an answer for this long is closed: TCP itself may take a quarter of an hour to notice a
    // loss.
    ...(commandTimeout !== undefined && { socketTimeout: commandTimeout * 2 }),
    db,
    protocol: 2,
    connectTimeout: connectTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0, // a lost connection rejects every command without an answer
    retryStrategy: pauseAfter,
    disableClientInfo: true, // Redis below 7.2 answers it with an error
  } satisfies RedisOptions;
}

function sentinelOptions({ hosts, masterName, isTls }: RedisTarget, tls: UpstreamTls, pauseAfter: PauseAfter) {
  return {
    sentinels: hosts.map((host) => ({ ...host })),
    name: masterName,
    role: 'master' as const,
    sentinelRetryStrategy: pauseAfter,
    sentinelCommandTimeout: connectTimeoutMs,
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: { ...tls } }),
  } satisfies RedisOptions;
}

/** A subscription to a sentinel, which waits for the sentinel for as long as it takes. */
function watchOptions({ isTls }: RedisTarget, tls: UpstreamTls, pauseAfter: PauseAfter) {
  return {
    protocol: 2,
    connectTimeout: connectTimeoutMs,
    keepAlive: connectTimeoutMs,
    enableReadyCheck: false,
    maxRetriesPerRequest: null,
    retryStrategy: pauseAfter,
    disableClientInfo: true,
    ...(isTls && { tls: { ...tls } }),
  } satisfies RedisOptions;
}

function connectCluster(
  { hosts }: RedisTarget,
  common: ReturnType<typeof commonOptions>,
  pauseAfter: PauseAfter,
): Cluster {
  const { retryStrategy: _, enableOfflineQueue: __, ...nodeOptions } = common;
  const options = {
    redisOptions: nodeOptions,
    clusterRetryStrategy: pauseAfter,
    // A command waits only for a node that is connecting, and no longer than the time-out; see `commands.ts`.
    enableOfflineQueue: true,
    // Zero turns off the retries of commands whose outcome is unknown. MOVED and ASK are followed: such a node has not
    // executed the command.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshInterval: slotsRefreshMs,
    slotsRefreshTimeout: connectTimeoutMs,
    // The certificate has the name that the cluster announces, so the name must not be resolved here.
    ...(nodeOptions.tls !== undefined && { dnsLookup: keepAddress }),
  } satisfies ClusterOptions;
  return new Cluster(
    hosts.map((host) => ({ ...host })),
    options,
  );
}

const keepAddress: NonNullable<ClusterOptions['dnsLookup']> = (address, done) => done(null, address);
