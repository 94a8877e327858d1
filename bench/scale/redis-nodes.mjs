// The Redis of a run: one server, or a cluster of masters without replicas, in memory only.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startRedis } from '../lib/redis.mjs';
import { within } from '../lib/wait.mjs';

const run = promisify(execFile);
const readyMs = 20_000;

/** Starts `masters` servers: a cluster if there are several. */
export async function startRedisNodes(masters) {
  const args = masters > 1 ? ['--cluster-enabled', 'yes'] : [];
  const nodes = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (let count = 0; count < masters; count += 1) nodes.push(await startRedis(args));
    if (masters > 1) await join(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  return {
    nodes,
    url: masters > 1 ? `redis+cluster://${addresses.join(',')}` : `redis://${addresses[0]}`,
    /** All data are lost. */
    async empty() {
      for (const node of nodes) await ask(node, 'FLUSHALL');
    },
    stop,
  };
}

/** Asks one node by redis-cli. */
export const ask = async ({ port }, ...words) =>
  (await run('redis-cli', ['-p', `${port}`, '--raw', ...words])).stdout.trimEnd();

async function join(nodes) {
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-replicas', '0', '--cluster-yes']);
  const isReady = async () => {
    const infos = await Promise.all(nodes.map((node) => ask(node, 'CLUSTER', 'INFO')));
    return infos.every((info) => info.includes('cluster_state:ok'));
  };
  if (!(await within(readyMs, isReady))) throw new Error('the nodes of the cluster did not agree');
}
