import { randomUUID } from 'node:crypto';
import { onTestFinished, TestRunner } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.ts';
import { waitFor } from './wait-for.ts';

/** A real Redis Cluster on loopback: masters, each with so many replicas. */
export interface RedisCluster extends AsyncDisposable {
  /** `redis+cluster://…` with all nodes. */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** The nodes that are masters now. */
  masters(): Promise<RedisServer[]>;
  /** Stops all nodes. Idempotent. */
  stop(): Promise<void>;
}

const slots = 16_384;
/** A node counts as failed after this time, which is short enough for a test. */
const nodeTimeoutMs = 1_000;

/**
 * Starts a cluster and resolves when all nodes say that it is ready. One started inside a test is stopped with it.
 * @param replicas of each master; 0 if not given, and then no failover
 */
export async function startRedisCluster({ masters = 3, replicas = 0 } = {}): Promise<RedisCluster> {
  const args = [
    ...['--cluster-enabled', 'yes', '--cluster-node-timeout', `${nodeTimeoutMs}`],
    ...['--cluster-config-file', `nodes-${randomUUID()}.conf`, '--repl-diskless-sync-delay', '0'],
  ];
  const nodes: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(stop);
  try {
    for (let count = 0; count < masters * (1 + replicas); count += 1) nodes.push(await startRedis({ args }));
    await join(nodes, masters);
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    async masters() {
      const roles = await Promise.all(nodes.map((node) => node.cli('ROLE').catch(() => '')));
      return nodes.filter((_, index) => roles[index]?.startsWith('master'));
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Creates the cluster like `redis-cli --cluster create`, but without pauses of seconds. */
async function join(nodes: readonly RedisServer[], masters: number): Promise<void> {
  const [first, ...others] = nodes as [RedisServer, ...RedisServer[]];
  for (const [index, node] of nodes.entries()) await node.cli('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
  for (const { port } of others) await first.cli('CLUSTER', 'MEET', '127.0.0.1', `${port}`);
  await waitFor(async () => (await knownTo(nodes)).every((count) => count === nodes.length), {
    what: 'the nodes to know each other',
    deadlineMs: 20_000,
  });
  const perMaster = Math.ceil(slots / masters);
  for (const [index, node] of nodes.slice(0, masters).entries()) {
    const end = Math.min(slots, (index + 1) * perMaster) - 1;
    await node.cli('CLUSTER', 'ADDSLOTSRANGE', `${index * perMaster}`, `${end}`);
  }
  for (const [index, node] of nodes.slice(masters).entries()) {
    const master = nodes[index % masters] as RedisServer;
    await node.cli('CLUSTER', 'REPLICATE', await master.cli('CLUSTER', 'MYID'));
  }
  await waitFor(() => isReady(nodes, masters), { what: 'the cluster to be ready', deadlineMs: 20_000 });
}

const knownTo = (nodes: readonly RedisServer[]): Promise<number[]> =>
  Promise.all(
    nodes.map(async (node) => {
      const lines = (await node.cli('CLUSTER', 'NODES')).split('\n').filter((line) => line !== '');
      return lines.filter((line) => !line.includes('handshake')).length;
    }),
  );

async function isReady(nodes: readonly RedisServer[], masters: number): Promise<boolean> {
  const infos = await Promise.all(nodes.map((node) => node.cli('CLUSTER', 'INFO')));
  if (!infos.every((info) => info.includes('cluster_state:ok'))) return false;
  const replications = await Promise.all(nodes.slice(masters).map((node) => node.cli('INFO', 'replication')));
  return replications.every((info) => info.includes('master_link_status:up'));
}
