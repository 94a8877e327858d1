import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { everythingFixture, type Gateway, modernFixture, root, startGateway } from '../support/gateway.ts';
import { type NetProxy, startNetProxy } from '../support/net-proxy.ts';
import { findFreePort } from '../support/redis-process.ts';
import { masterOf, type RedisSentinel, startRedisSentinel } from '../support/redis-sentinel.ts';
import { trafficServer } from '../support/traffic.ts';
import { makeOld, startUsedRedis } from '../support/used-redis.ts';

/** Half of the default, so that more faults fit into an hour, and long enough for a machine that is busy otherwise. */
export const leaseMs = 3_000;
/** P3: a loss is noticed and answered within this time. */
export const noticedMs = leaseMs + 2_000;
/** Allowed beyond that: for a machine of few cores on which other work is done too, and the processes that are started. */
export const loadMs = 8_000;
/** What nobody asks for ends soon, so that it is seen to end. */
export const idleMs = 45_000;
export const keptMs = 120_000;
/**
 * The gateways give up a command to Redis after a sixth of a lease. One that stands still for nearly as long may lose
 * Redis for a moment.
 */
export const lateMs = Math.round((leaseMs / 6) * 0.8);
/**
 * So often a server with a process for each session says something that belongs to no call. Of a process that several
 * users share, such a message goes to nobody (docs/decisions/0149).
 */
const tickMs = 500;

const clusterArgs = [
  ...['--cluster.lease', `${leaseMs}ms`],
  ...['--sse.reconnectDelay', '100ms', '--timeouts.drain', '5s'],
  ...['--timeouts.grace', '2s'],
  ...['--session-idle', `${idleMs}ms`, '--timeouts.slowReader', '3s'],
  ...['--replay.maxAge', `${keptMs}ms`],
];

/** The sentinel chooses the replica after so long without its master: not at each breath of a busy machine. */
export const masterLostMs = 1_500;

/** With a file on its disk, which can be full. */
const redisArgs = ['--appendonly', 'yes', '--appendfsync', 'everysec'];

/** Everything that a soak runs on. */
export interface Stage {
  readonly cluster: Cluster;
  /** Set if Redis is a master with a replica. */
  readonly sentinel: RedisSentinel | undefined;
  /** Where each gateway notes when its event loop stood still, in a file named after its pid; see `lateness.mjs`. */
  readonly lateness: string;
  /** A gateway with a store in files, as the remote server (Streamable HTTP, and HTTP+SSE) of the others. */
  readonly upstream: Gateway;
  /** Between the two. */
  readonly upstreamProxy: NetProxy;
  readonly adminPorts: readonly number[];
  /** Where all its files are. */
  readonly folder: string;
  /** What each process of a server has on its command line. */
  readonly marker: string;
  /** Where servers note what they run; see `executionsIn`. */
  readonly notes: string;
  /** The endpoint of a server by way of the balancer: `stdio` has one process for all, and `own` one for each session. */
  urlOf(server: string): string;
  stop(): Promise<void>;
}

/** Starts Redis, three gateways behind a balancer, and what is behind these. They end with the test, also where only some of them could be started. */
export async function startStage(folder: string, { hasSentinel = false } = {}): Promise<Stage> {
  const ends: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  onTestFinished(stop);
  await mkdir(folder, { recursive: true });
  const marker = join(folder, 'run');
  const notes = `${marker}-notes`;
  await writeFile(notes, '');
  const upstream = await startGateway({
    args: [
      ...['--session-idle', `${2 * idleMs}ms`, '--sse.reconnectDelay', '100ms', '--log-level', 'warn'],
      ...['--replay.store', `file:${join(folder, 'upstream-store')}`],
    ],
    command: trafficServer(notes),
    isStoppedWithTest: false,
  });
  ends.push(upstream.stop);
  const upstreamProxy = await startNetProxy(upstream.port, { isRecorded: false });
  ends.push(upstreamProxy.close);
  const served = ([command, ...args]: readonly string[], more: object = {}) => ({
    ...{ command, args: [...args, marker] },
    ...more,
  });
  const [command, ...args] = trafficServer(notes);
  const [, ...ticking] = trafficServer(notes, tickMs);
  const mcpServers = {
    stdio: { command, args, share: 'all' },
    own: { command, args: ticking, share: 'session' },
    sleepy: { command, args, hibernateAfter: '5s' },
    remote: { url: upstreamProxy.urlOf(upstream.url) },
    old: { url: upstreamProxy.urlOf(`${upstream.baseUrl}/sse`) },
    asks: served(everythingFixture, { share: 'all' }),
    modern: served(modernFixture, { era: 'modern' }),
  };
  const config = join(folder, 'gangway.json');
  await writeFile(config, JSON.stringify({ mcpServers }));
  const adminPorts = [await findFreePort(), await findFreePort(), await findFreePort()];
  const lateness = join(folder, 'lateness');
  await mkdir(lateness, { recursive: true });
  const sentinel = hasSentinel ? await startRedisSentinel({ args: redisArgs, downAfterMs: masterLostMs }) : undefined;
  if (sentinel !== undefined) ends.push(sentinel.stop);
  const redis = sentinel === undefined ? await startUsedRedis({ args: redisArgs }) : await masterOf(sentinel);
  ends.push(redis.stop);
  if (sentinel !== undefined) await makeOld(redis);
  const cluster = await startCluster({
    adminPorts,
    redis,
    ...(sentinel && { sentinel }),
    link: 'proxied',
    isPartitionable: true,
    program: [process.execPath, '--import', `${root}test/soak/lateness.mjs`, `${root}dist/main.js`],
    env: { SOAK_LATENESS: lateness, SOAK_LATE_MS: `${lateMs}` },
    isRecorded: false,
    args: [...clusterArgs, '--config', config],
  });
  ends.push(cluster.stop);
  return {
    ...{ cluster, sentinel, upstream, upstreamProxy, adminPorts, folder, marker, notes, lateness },
    urlOf: (server) => `${cluster.balancer.baseUrl}/${server}/mcp`,
    stop,
  };
}
