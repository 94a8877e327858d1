import type { ConnectionOptions } from 'node:tls';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { parseRedisUrl, type RedisTarget } from './redis-url.ts';

/** A client of one server (found by itself or by sentinels) or of a cluster. */
export type RedisClient = Redis | Cluster;

/** Certificates for `rediss` URLs, as PEM text; Node.js' own authorities if there is no `ca`. */
export interface RedisTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name in the server's certificate, where it is not the host's. */
  readonly servername?: string;
}

/** How to reach Redis. */
export interface ConnectOptions {
  readonly url: string;
  readonly tls?: RedisTls;
  /** Of the sentinels themselves, where they ask for one. */
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
}

const connectTimeoutMs = 5_000;
/** A cluster's slots are asked for again this often, and whenever a command could not be delivered. */
const slotsRefreshMs = 5_000;

/**
 * Prepares connections; the URL is looked at here, so that a wrong one throws at the start.
 *
 * No command waits in a queue for a connection and none is sent twice: with the connection each command that has no answer
 * is rejected. Whether it was done is then for the caller to find out (docs/design.md, D11). Reconnects for ever.
 *
 * @param maxReconnectMs the longest wait before the next attempt to connect
 */
export function createConnector(
  options: ConnectOptions,
  maxReconnectMs: number,
): (commandTimeoutMs: number | undefined) => RedisClient {
  const target = parseRedisUrl(options.url);
  // Capped, and spread: a hundred gateways do not come back in the same instant.
  const backoffMs: Backoff = (attempt) =>
    Math.min(50 * 2 ** Math.min(attempt, 10), maxReconnectMs) * (0.5 + Math.random() / 2);
  return (commandTimeoutMs) => {
    const common = commonOptions(target, options.tls, commandTimeoutMs, backoffMs);
    if (target.kind === 'cluster') return connectCluster(target, common, backoffMs);
    if (target.kind === 'sentinel') return new Redis({ ...common, ...sentinelOptions(target, options, backoffMs) });
    return new Redis({ ...common, ...target.hosts[0] });
  };
}

/** How many milliseconds to wait before an attempt. */
type Backoff = (attempt: number) => number;

function commonOptions(
  { isTls, username, password, db }: RedisTarget,
  tls: RedisTls = {},
  commandTimeout: number | undefined,
  backoffMs: Backoff,
) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isTls && { tls: tlsOptions(tls) }),
    // A connection on which nothing is answered for so long is given up: TCP itself may take a quarter of an hour.
    ...(commandTimeout !== undefined && { commandTimeout, socketTimeout: commandTimeout * 2 }),
    db,
    protocol: 2,
    connectTimeout: connectTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0, // with the connection, every command without an answer is rejected
    retryStrategy: backoffMs,
    disableClientInfo: true, // Redis below 7.2 answers it with an error
  } satisfies RedisOptions;
}

function sentinelOptions({ hosts, masterName, isTls }: RedisTarget, options: ConnectOptions, backoffMs: Backoff) {
  const { sentinelUsername, sentinelPassword, tls = {} } = options;
  return {
    sentinels: hosts.map((host) => ({ ...host })),
    name: masterName,
    role: 'master' as const,
    sentinelRetryStrategy: backoffMs,
    sentinelCommandTimeout: connectTimeoutMs,
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(tls) }),
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
  } satisfies RedisOptions;
}

function connectCluster({ hosts }: RedisTarget, common: ReturnType<typeof commonOptions>, backoffMs: Backoff): Cluster {
  const { retryStrategy: _, enableOfflineQueue: __, ...ofNodes } = common;
  const options = {
    redisOptions: ofNodes,
    clusterRetryStrategy: backoffMs,
    // Only for a node that is being connected to, which holds a command no longer than the time-out; see `commands.ts`.
    enableOfflineQueue: true,
    // Zero turns off what would send a command again whose outcome is unknown. MOVED and ASK are followed: not done there.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshInterval: slotsRefreshMs,
    slotsRefreshTimeout: connectTimeoutMs,
    // A name that the cluster announces is the one in its certificate.
    ...(ofNodes.tls !== undefined && { dnsLookup: addressAsItIs }),
  } satisfies ClusterOptions;
  return new Cluster(
    hosts.map((host) => ({ ...host })),
    options,
  );
}

const addressAsItIs: NonNullable<ClusterOptions['dnsLookup']> = (address, done) => done(null, address);

const tlsOptions = ({ ca, cert, key, servername }: RedisTls): ConnectionOptions => ({
  ...(ca !== undefined && { ca }),
  ...(cert !== undefined && { cert }),
  ...(key !== undefined && { key }),
  ...(servername !== undefined && { servername }),
});
