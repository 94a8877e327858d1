import { Cluster, type Redis } from 'ioredis';
import { type ConnectOptions, createConnector, type RedisClient } from '../connection/connect.ts';
import { replyErrorCode, withoutArguments } from '../connection/reply-error.ts';
import { within } from '../connection/within.ts';
import { createKeys } from '../keys.ts';

/** What is to be looked at. */
export interface InspectOptions extends ConnectOptions {
  readonly prefix: string;
  /** In which a command has to be answered. */
  readonly commandTimeoutMs: number;
}

/** What a Redis is like, for the operator. */
export interface RedisFindings {
  /** As it says; undefined if this user may not ask (INFO). */
  readonly version: string | undefined;
  /** Of a PING, the median of some. */
  readonly latencyMs: number;
  /** What it does when its memory is full: `noeviction`, or one that throws keys away; undefined if this user may not ask. */
  readonly memoryPolicy: string | undefined;
  /** Instances that hold a lease under this prefix now. */
  readonly instances: number;
}

const connectTimeoutMs = 5_000;
const pings = 5;
const maxReconnectMs = 1_000;

/** A Redis that others use too may hold millions of keys: the look for instances stops after so many rounds. */
const maxScans = 100;
const keysPerScan = 1_000;

/** Looks at a Redis without changing anything. Rejects with what its client says of a Redis that cannot be used. */
export const inspectRedis = (options: InspectOptions): Promise<RedisFindings> =>
  look(options, async (client, nodes, infos) => ({
    version: infos[0]?.get('valkey_version') ?? infos[0]?.get('redis_version'),
    latencyMs: await latencyMs(client),
    memoryPolicy: policyIn(infos),
    instances: await countInstances(client, nodes, options.prefix),
  }));

/** `RedisFindings.memoryPolicy` alone, which costs next to nothing. Rejects as `inspectRedis`. */
export const memoryPolicyOf = (options: Omit<InspectOptions, 'prefix'>): Promise<string | undefined> =>
  look(options, async (_client, _nodes, infos) => policyIn(infos));

type Infos = readonly ReadonlyMap<string, string>[];

async function look<T>(
  options: Omit<InspectOptions, 'prefix'>,
  at: (client: RedisClient, nodes: readonly Redis[], infos: Infos) => Promise<T>,
): Promise<T> {
  const client = createConnector(options, maxReconnectMs)(options.commandTimeoutMs);
  try {
    await ready(client);
    const nodes: readonly Redis[] = client instanceof Cluster ? client.nodes('master') : [client];
    return await at(client, nodes, await Promise.all(nodes.map(infoOf)));
  } finally {
    client.disconnect();
  }
}

/** Of several nodes that of one that throws keys away, if there is one. */
function policyIn(infos: Infos): string | undefined {
  const policies = infos.map((info) => info.get('maxmemory_policy')).filter((policy) => policy !== undefined);
  return policies.find((policy) => policy !== 'noeviction') ?? policies[0];
}

function ready(client: RedisClient): Promise<void> {
  const isReady = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve);
    // The first fault tells what is wrong; the client itself would try for ever.
    client.on('error', (cause: Error) => reject(withoutArguments(cause)));
  });
  return within(isReady, connectTimeoutMs);
}

async function infoOf(node: Redis): Promise<ReadonlyMap<string, string>> {
  try {
    const lines = (await node.info()).split('\r\n').map((line) => line.split(':', 2));
    return new Map(lines.filter((parts): parts is [string, string] => parts.length === 2));
  } catch (error) {
    if (replyErrorCode(error) === 'NOPERM') return new Map();
    throw error;
  }
}

async function latencyMs(client: RedisClient): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < pings; n++) {
    const startedAt = performance.now();
    await client.ping();
    times.push(performance.now() - startedAt);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(pings / 2)] as number;
  return Math.round(median * 100) / 100;
}

async function countInstances(client: RedisClient, nodes: readonly Redis[], prefix: string): Promise<number> {
  const { allLeases } = createKeys(prefix);
  const leases = new Set<string>();
  for (const node of nodes) {
    let cursor = '0';
    for (let scans = 0; scans < maxScans; scans++) {
      const [next, keys] = await node.scan(cursor, 'MATCH', allLeases, 'COUNT', keysPerScan);
      for (const key of keys) leases.add(key);
      cursor = next;
      if (cursor === '0') break;
    }
  }
  // One by one: in a cluster they are in different slots.
  const states = await Promise.all([...leases].map((lease) => client.get(lease)));
  return states.filter((state) => state === 'alive').length;
}
