import { Cluster, type Redis } from 'ioredis';
import type { RedisConnection, RedisFindings } from '../../../app/features/stores.ts';
import { failUnreachable } from '../../../core/store/store-unavailable.ts';
import { within } from '../../../core/util/timing/within.ts';
import { createConnector, type RedisClient } from '../connection/connect.ts';
import { replyErrorCode, withoutArguments } from '../connection/reply-error.ts';
import { createKeys } from '../keys.ts';

const connectTimeoutMs = 5_000;
/** All that is asked takes milliseconds. */
const readTimeoutMs = 5_000;
const pings = 5;
const maxReconnectMs = 1_000;

/** Inspects a Redis without changing anything. Rejects with the client's error if Redis cannot be used. */
export const inspectRedis = (options: RedisConnection & { readonly prefix: string }): Promise<RedisFindings> =>
  inspect(options, async (client, infos) => ({
    version: infos[0]?.get('valkey_version') ?? infos[0]?.get('redis_version'),
    latencyMs: await measureLatencyMs(client),
    memoryPolicy: evictionPolicy(infos),
    addresses: await addressesOf(client, options.prefix),
  }));

/** Finds only `RedisFindings.memoryPolicy`, which is cheap. Rejects like `inspectRedis`. */
export const memoryPolicyOf = (options: RedisConnection): Promise<string | undefined> =>
  inspect(options, async (_client, infos) => evictionPolicy(infos));

type Infos = readonly ReadonlyMap<string, string>[];

async function inspect<T>(
  options: RedisConnection,
  read: (client: RedisClient, infos: Infos) => Promise<T>,
): Promise<T> {
  const client = createConnector(options, maxReconnectMs).connect(options.commandTimeoutMs);
  try {
    await waitUntilReady(client);
    const nodes: readonly Redis[] = client instanceof Cluster ? client.nodes('master') : [client];
    const findings = Promise.all(nodes.map(readInfo)).then((infos) => read(client, infos));
    return await within(findings, readTimeoutMs, failUnreachable);
  } finally {
    client.disconnect();
  }
}

/** Returns the policy of a node that evicts keys if there is one, else that of any node. */
function evictionPolicy(infos: Infos): string | undefined {
  const policies = infos.map((info) => info.get('maxmemory_policy')).filter((policy) => policy !== undefined);
  return policies.find((policy) => policy !== 'noeviction') ?? policies[0];
}

function waitUntilReady(client: RedisClient): Promise<void> {
  const isReady = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve);
    // The first fault is the reason. The client itself would retry for ever.
    client.on('error', (cause: Error) => reject(withoutArguments(cause)));
  });
  return within(isReady, connectTimeoutMs, failUnreachable);
}

async function readInfo(node: Redis): Promise<ReadonlyMap<string, string>> {
  try {
    const lines = (await node.info()).split('\r\n').map((line) => line.split(':', 2));
    return new Map(lines.filter((parts): parts is [string, string] => parts.length === 2));
  } catch (error) {
    if (replyErrorCode(error) === 'NOPERM') return new Map();
    throw error;
  }
}

async function measureLatencyMs(client: RedisClient): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < pings; n++) {
    const startedAt = performance.now();
    await client.ping();
    times.push(performance.now() - startedAt);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(pings / 2)] as number;
  return Math.round(median * 100) / 100;
}

async function addressesOf(client: RedisClient, prefix: string): Promise<readonly string[]> {
  const { addresses, lease } = createKeys(prefix);
  const all = Object.entries(await client.hgetall(addresses));
  const states = await Promise.all(all.map(([name]) => client.get(lease(name))));
  return all.flatMap(([, address], index) => (states[index] === 'alive' ? [address] : []));
}
