import { setTimeout as delay } from 'node:timers/promises';
import { startRedisSentinel } from '../support/redis-sentinel.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { makeOld, startUsedRedis } from '../support/used-redis.ts';

/** A Redis for a run, and what happens to it in the middle of the run. */
export interface FailingRedis {
  readonly redis: RedisServer;
  /** Resolves when Redis works again, with a note for the report. */
  fail(): Promise<string>;
}

/** A row of the table. */
export interface Failure {
  readonly name: string;
  /** True if the gateway promises that nothing is lost silently or doubled. */
  readonly isPromised: boolean;
  start(): Promise<FailingRedis>;
}

/** For how long Redis is away, or too small. */
const awayMs = 2_000;

/** For how long a replica does not follow before the master is lost. */
const unreplicatedMs = 400;

const killed = (args: readonly string[], keepData: boolean) => async (): Promise<FailingRedis> => {
  const redis = await startUsedRedis({ args });
  return {
    redis,
    async fail() {
      await redis.kill();
      await delay(awayMs);
      await redis.restart({ keepData });
      return '';
    },
  };
};

/** A failover by Sentinel. With `isLossy`, the replica has stopped to follow a while before. */
const failedOver = (isLossy: boolean) => async (): Promise<FailingRedis> => {
  const sentinel = await startRedisSentinel();
  const master = await sentinel.master();
  await makeOld(master);
  return {
    redis: { ...master, url: sentinel.url },
    async fail() {
      const replica = sentinel.servers.find(({ port }) => port !== master.port) as RedisServer;
      if (isLossy) {
        await sentinel.partReplica();
        await delay(unreplicatedMs);
      }
      // The replica is asked first, so the difference is never too small.
      const copied = await offsetOf(replica, 'slave');
      const written = await offsetOf(master, 'master');
      await sentinel.loseMaster();
      return `at most ${written - copied} bytes of writes lost`;
    },
  };
};

const offsetOf = async (server: RedisServer, role: 'master' | 'slave'): Promise<number> =>
  Number(new RegExp(`^${role}_repl_offset:(\\d+)`, 'm').exec(await server.cli('INFO', 'replication'))?.[1]);

const numberIn = (info: string, name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);

/** Redis has less memory than it uses, for a while. */
const tooSmall = (policy: string) => async (): Promise<FailingRedis> => {
  const redis = await startUsedRedis();
  return {
    redis,
    async fail() {
      const used = numberIn(await redis.cli('INFO', 'memory'), 'used_memory');
      await redis.cli('CONFIG', 'SET', 'maxmemory-policy', policy);
      await redis.cli('CONFIG', 'SET', 'maxmemory', String(Math.floor(used * 0.9)));
      await delay(awayMs);
      await redis.unfill();
      return `${numberIn(await redis.cli('INFO', 'stats'), 'evicted_keys')} keys evicted`;
    },
  };
};

const evicting = ['allkeys-lru', 'allkeys-lfu', 'allkeys-random'];
const evictingVolatile = ['volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'];

/** All failures, in the order of the table. */
export const failures: readonly Failure[] = [
  {
    name: '`kill -9`, AOF `everysec`',
    isPromised: true,
    start: killed(['--appendonly', 'yes', '--appendfsync', 'everysec'], true),
  },
  { name: '`kill -9`, no persistence', isPromised: true, start: killed([], false) },
  { name: 'Sentinel failover, replica up to date', isPromised: true, start: failedOver(false) },
  { name: 'Sentinel failover, replica behind', isPromised: true, start: failedOver(true) },
  { name: '`maxmemory`, `noeviction`', isPromised: true, start: tooSmall('noeviction') },
  ...[...evicting, ...evictingVolatile].map((policy) => ({
    name: `\`maxmemory\`, \`${policy}\``,
    isPromised: false,
    start: tooSmall(policy),
  })),
];
