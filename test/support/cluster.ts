import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, TestRunner } from 'vitest';
import { freeze, thaw } from './freeze.ts';
import { type Exit, type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { type NetProxy, type ProxiedConnection, startNetProxy } from './net-proxy.ts';
import { descendantsOf, type ProcessInfo, stillAlive, waitUntilGone } from './processes.ts';
import type { RedisSentinel } from './redis-sentinel.ts';
import type { RedisServer } from './redis-server.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import { processOf } from './socket-owner.ts';
import { startUsedRedis } from './used-redis.ts';
import type { Waiting } from './wait-for.ts';

export interface ClusterOptions extends Pick<GatewayOptions, 'command' | 'env' | 'program'> {
  /** The number of gateways: 3. */
  readonly instances?: number;
  /** Further options for all gateways, or for each one. */
  readonly args?: readonly string[] | ((instance: number) => readonly string[]);
  /** Another program for some instances; the others run `program`. */
  readonly programOf?: (instance: number) => readonly string[] | undefined;
  /** An existing Redis, which the cluster does not stop. By default, the cluster has its own, with old data. */
  readonly redis?: RedisServer;
  /** The sentinel by which the instances find `redis`. */
  readonly sentinel?: RedisSentinel;
  /** Puts a proxy between each instance and Redis, which `partition` needs. */
  readonly isPartitionable?: boolean;
  /** The operator ports of the instances; by default they have none. */
  readonly adminPorts?: readonly number[];
  /** How the instances exchange messages. */
  readonly link?: LinkKind;
  /** False: the balancer and the proxies record nothing, for runs of hours. */
  readonly isRecorded?: boolean;
}

/**
 * The state of the Redis connections in a partition. `held`: bytes in both directions wait until it heals. `lost`: the
 * same, but the connections break when it heals. `refused`: connections are reset and new ones refused.
 */
export type Partition = 'held' | 'lost' | 'refused';

/** How instances reach each other: over Unix sockets (`local`), over TLS, or over TLS through `linkProxies` (`proxied`). */
export type LinkKind = 'local' | 'direct' | 'proxied';

/** The kind of clusters that do not choose one: TEST_LINK runs any suite on another link. */
const usualLink = (process.env['TEST_LINK'] ?? 'local') as LinkKind;

/** The options of an instance for a link, with the proxy before its port, if there is one. */
function linkArguments(link: LinkKind, proxy: LinkProxy | undefined): readonly string[] {
  if (link === 'local') return [];
  const host = ['--cluster.link.host', '127.0.0.1'];
  return proxy
    ? [...host, '--cluster.link.port', `${proxy.target}`, '--cluster.link.address', `127.0.0.1:${proxy.port}`]
    : host;
}

/** Instances that have directories of their own do not find each other's sockets, as on different hosts. */
const needsDirectories = (link: LinkKind): boolean => link !== 'local';

/** A proxy before the port at which other instances reach an instance. */
export interface LinkProxy extends NetProxy {
  readonly target: number;
}

async function startLinkProxy(
  isRecorded: boolean,
  onOpened: (connection: ProxiedConnection, proxyPort: number) => void,
): Promise<LinkProxy> {
  const target = await freePort();
  const proxy: NetProxy = await startNetProxy(target, {
    isRecorded,
    onOpened: (connection) => onOpened(connection, proxy.port),
  });
  return Object.assign(proxy, { target });
}

/**
 * The proxies between an instance and the Redis servers of a sentinel, and the URL at which it finds them. The sentinel
 * names the servers by their ports, so the proxy before it puts those of the other proxies in their place.
 */
async function startSentinelProxies(
  { url, servers }: RedisSentinel,
  isRecorded: boolean,
): Promise<{ readonly url: string; readonly proxies: readonly NetProxy[] }> {
  const ports = new Map<string, string>();
  const proxies: NetProxy[] = [];
  for (const { port } of servers) {
    const proxy = await startNetProxy(port, { isRecorded });
    proxies.push(proxy);
    ports.set(`\r\n${port}\r\n`, `\r\n${proxy.port}\r\n`); // of one length, since both are from the ephemeral range
  }
  const edit = (chunk: Buffer): Buffer => {
    let text = chunk.toString('latin1');
    for (const [port, proxied] of ports) text = text.replaceAll(port, proxied);
    return Buffer.from(text, 'latin1');
  };
  const watcher = await startNetProxy(Number(new URL(url).port), { isRecorded, edit });
  return { url: watcher.urlOf(url), proxies: [watcher, ...proxies] };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Who asks, and who answers. */
export type LinkPair = readonly [from: number, to: number];

/** The parts of the network between instances. */
function createLinkPartitions(pidOf: (instance: number) => number | undefined, count: number) {
  let parted: readonly LinkPair[] = [];
  let how: Partition = 'held';
  const sourceOf = ({ clientPort }: ProxiedConnection, proxyPort: number): number => {
    const pids = Array.from({ length: count }, (_, instance) => pidOf(instance) ?? 0);
    const pid = processOf(clientPort, proxyPort, pids);
    return pid === undefined ? -1 : pids.indexOf(pid);
  };
  const part = (connection: ProxiedConnection, to: number, proxyPort: number): void => {
    if (!parted.some(([, other]) => other === to)) return;
    const from = sourceOf(connection, proxyPort);
    if (!parted.some(([one, other]) => one === from && other === to)) return;
    if (how === 'refused') connection.reset();
    else if (how === 'lost') connection.blackHole();
    else connection.set({ toServer: { isHeld: true }, toClient: { isHeld: true } });
  };
  return {
    part,
    set(pairs: readonly LinkPair[], by: Partition, proxies: readonly NetProxy[]): void {
      parted = pairs;
      how = by;
      for (const [to, proxy] of proxies.entries())
        for (const connection of proxy.open()) part(connection, to, proxy.port);
    },
    heal(): void {
      parted = [];
    },
  };
}

/** Gateways that share a Redis, behind a balancer without stickiness. */
export interface Cluster extends AsyncDisposable {
  /** The endpoint behind the balancer: `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  readonly balancer: RoundRobin;
  readonly redis: RedisServer;
  /** The gateways by number; after `restart`, the new one. */
  readonly instances: readonly Gateway[];
  /** The proxies between the instances and Redis, and its sentinel; none unless the cluster `isPartitionable`. */
  readonly redisProxies: readonly NetProxy[];
  /** The proxies through which others reach each instance directly; none unless the link is `proxied`. */
  readonly linkProxies: readonly LinkProxy[];
  /** Sends the signal (SIGKILL) and resolves when the instance has ended. The balancer then skips it. */
  kill(instance: number, signal?: NodeJS.Signals, waiting?: Waiting): Promise<Exit>;
  /** Freezes an instance (SIGSTOP). The kernel still accepts connections for it. */
  freeze(instance: number): Promise<void>;
  thaw(instance: number): void;
  /**
   * Ends an instance by SIGTERM if it runs. Starts another one in its place on a new port, and adds it to the rotation.
   */
  restart(instance: number): Promise<Gateway>;
  /** Separates an instance from Redis; by default `held`. */
  partition(instance: number, how?: Partition): Promise<void>;
  heal(instance: number): Promise<void>;
  /**
   * Separates instances from each other, while all reach Redis: what the first of a pair asks the second one, but not the
   * other way. Needs the link `proxied`, and Linux.
   */
  partitionLinks(pairs: readonly LinkPair[], how?: Partition): void;
  healLinks(): Promise<void>;
  /** Resolves when no process of an ended instance is alive any more; rejects with the processes that are. */
  allChildrenEnded(waiting?: Waiting): Promise<void>;
  /** Ends everything that the cluster started. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster. A cluster that a test starts is stopped when the test has finished, failed or not. A cluster that a
 * hook starts must be stopped in the matching hook.
 */
export async function startCluster({
  instances: count = 3,
  args = [],
  redis: givenRedis,
  sentinel,
  isPartitionable = false,
  adminPorts = [],
  isRecorded = true,
  link = usualLink,
  programOf,
  ...gatewayOptions
}: ClusterOptions = {}): Promise<Cluster> {
  const started: (() => Promise<unknown>)[] = [];
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    const faults: unknown[] = [];
    for (const end of started.reverse()) await end().catch((fault: unknown) => faults.push(fault));
    if (faults.length > 0) throw faults[0];
  };
  const isInTest = TestRunner.getCurrentTest() !== undefined;
  if (isInTest) onTestFinished(stop);
  try {
    const redis = givenRedis ?? (await startUsedRedis());
    started.push(async () => (givenRedis === undefined ? redis.stop() : undefined));
    /** The way of each instance to Redis. */
    const ways: { readonly url: string; readonly proxies: readonly NetProxy[] }[] = [];
    for (let instance = 0; isPartitionable && instance < count; instance++) {
      const proxied = async () => {
        const proxy = await startNetProxy(redis.port, { isRecorded });
        return { url: proxy.urlOf(redis.url), proxies: [proxy] };
      };
      const way = await (sentinel === undefined ? proxied() : startSentinelProxies(sentinel, isRecorded));
      started.push(...way.proxies.map(({ close }) => close));
      ways.push(way);
    }
    const redisProxies = ways.flatMap(({ proxies }) => proxies);
    const linkProxies: LinkProxy[] = [];
    const links = createLinkPartitions((instance) => fleet.instances[instance]?.pid, count);
    for (let instance = 0; link === 'proxied' && instance < count; instance++) {
      const proxy = await startLinkProxy(isRecorded, (connection, port) => links.part(connection, instance, port));
      started.push(proxy.close);
      linkProxies.push(proxy);
    }
    const directories = await mkdtemp(join(tmpdir(), 'gangway-cluster-'));
    started.push(() => rm(directories, { recursive: true, force: true }));
    const startInstance = async (instance: number): Promise<Gateway> => {
      const directory = join(directories, `${instance}`);
      await mkdir(directory, { recursive: true });
      const redisUrl = ways[instance]?.url ?? sentinel?.url ?? redis.url;
      const more = typeof args === 'function' ? args(instance) : args;
      const program = programOf?.(instance);
      return startGateway({
        ...gatewayOptions,
        ...(program && { program }),
        ...(needsDirectories(link) && { env: { ...gatewayOptions.env, XDG_RUNTIME_DIR: directory } }),
        adminPort: adminPorts[instance] ?? 0,
        args: ['--redis', redisUrl, ...linkArguments(link, linkProxies[instance]), ...more],
        isStoppedWithTest: false,
      });
    };
    const fleet = createFleet(startInstance);
    // The gateways end with a healthy network and Redis. A test that needs something else ends them itself.
    started.push(fleet.stop, async () => {
      redis.resume();
      await Promise.all([...redisProxies, ...linkProxies].map(heal));
    });
    await fleet.startAll(count);
    const { instances } = fleet;
    const balancer = await startRoundRobin({ backends: instances.map(({ baseUrl }) => baseUrl), isRecorded });
    started.push(balancer.close);

    const proxiesOf = (instance: number): readonly NetProxy[] => {
      const way = ways[instance];
      if (way === undefined) throw new Error(`Instance ${instance} has no proxy to Redis: see isPartitionable`);
      return way.proxies;
    };
    return {
      url: `${balancer.baseUrl}${new URL(instances[0]?.url ?? '').pathname}`,
      balancer,
      redis,
      instances,
      redisProxies,
      linkProxies,
      kill: fleet.end,
      freeze: fleet.freeze,
      thaw: fleet.thaw,
      async restart(instance) {
        const gateway = await fleet.restart(instance);
        balancer.setBackend(instance, gateway.baseUrl);
        balancer.setInRotation(instance, true);
        return gateway;
      },
      async partition(instance, how = 'held') {
        for (const proxy of proxiesOf(instance)) {
          if (how === 'lost') proxy.blackHoleAll();
          if (how !== 'refused') proxy.set({ toServer: { isHeld: true }, toClient: { isHeld: true } });
          else {
            await proxy.refuse();
            proxy.resetAll();
          }
        }
      },
      heal: async (instance) => void (await Promise.all(proxiesOf(instance).map(heal))),
      partitionLinks: (pairs, how = 'held') => links.set(pairs, how, linkProxies),
      async healLinks() {
        links.heal();
        await Promise.all(linkProxies.map(heal));
      },
      allChildrenEnded: fleet.allChildrenEnded,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function heal(proxy: NetProxy): Promise<void> {
  proxy.breakBlackHoles();
  proxy.set({});
  await proxy.accept();
}

/** The gateways by number, and the processes that they started. */
function createFleet(start: (instance: number) => Promise<Gateway>) {
  const instances: Gateway[] = [];
  const running = new Set<Gateway>();
  const frozen = new Set<number>();
  /** The processes of gateways that were ended, by pid and start time. */
  const children = new Map<string, ProcessInfo>();

  const startOne = async (instance: number): Promise<Gateway> => {
    const gateway = await start(instance);
    running.add(gateway);
    gateway.exited.then(() => running.delete(gateway));
    return gateway;
  };
  const instanceAt = (instance: number): Gateway => {
    const gateway = instances[instance];
    if (gateway === undefined) throw new Error(`There is no instance ${instance}`);
    return gateway;
  };
  const noteChildren = async (pid: number): Promise<void> => {
    for (const child of await descendantsOf(pid)) children.set(`${child.pid} ${child.started}`, child);
  };
  const thawOne = (instance: number): void => {
    if (frozen.delete(instance)) thaw(instanceAt(instance).pid);
  };
  const end = async (instance: number, signal: NodeJS.Signals = 'SIGKILL', waiting?: Waiting): Promise<Exit> => {
    const gateway = instanceAt(instance);
    if (running.has(gateway)) {
      // A frozen gateway starts nothing between the listing of its children and its end.
      if (signal === 'SIGKILL') await freeze(gateway.pid);
      await noteChildren(gateway.pid);
    }
    if (signal === 'SIGKILL') frozen.delete(instance);
    else thawOne(instance);
    return gateway.stop(signal, waiting);
  };

  return {
    instances,
    end,
    async startAll(count: number): Promise<void> {
      const all = await Promise.allSettled(Array.from({ length: count }, (_, instance) => startOne(instance)));
      instances.push(...all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
      for (const one of all) if (one.status === 'rejected') throw one.reason;
    },
    async freeze(instance: number): Promise<void> {
      await freeze(instanceAt(instance).pid);
      frozen.add(instance);
    },
    thaw: thawOne,
    async restart(instance: number): Promise<Gateway> {
      await end(instance, 'SIGTERM');
      const gateway = await startOne(instance);
      instances[instance] = gateway;
      return gateway;
    },
    async allChildrenEnded(waiting?: Waiting): Promise<void> {
      await waitUntilGone([...children.values()], waiting);
    },
    async stop(): Promise<void> {
      const ends = await Promise.allSettled(instances.map((_, instance) => end(instance, 'SIGTERM')));
      // The test may have left processes behind, which the next test must not find.
      await killAll(await stillAlive([...children.values()]));
      for (const ended of ends) if (ended.status === 'rejected') throw ended.reason;
    },
  };
}

async function killAll(processes: readonly ProcessInfo[]): Promise<void> {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // the process has just ended by itself
    }
  }
  await waitUntilGone(processes);
}
