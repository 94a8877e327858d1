import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../resume/random.ts';
import type { LinkPair } from '../support/cluster.ts';
import { freeze, thaw } from '../support/freeze.ts';
import { descendantsOf } from '../support/processes.ts';
import { setDiskFull } from '../support/redis-process.ts';
import type { RedisSentinel } from '../support/redis-sentinel.ts';
import weights from './fault-weights.json' with { type: 'json' };
import type { FaultKind, Ledger } from './ledger.ts';
import { leaseMs, type Stage } from './stage.ts';

/** Only these are killed and drained, so that what instance 0 uses is seen over the whole run. */
const mortal = [1, 2] as const;

/** What the faults are brought about with. */
export interface FaultTools {
  readonly stage: Stage;
  readonly ledger: Ledger;
  /** Cuts what the clients of this round have open. */
  cutClients(): void;
}

/** A fault of the plan. Everything that is random about it is decided, so that a seed names the whole plan. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** In words, with its numbers. */
  readonly what: string;
  /** The pause before it, and the one after it, in milliseconds. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** Brings it about and resolves when it is over: what it does to clients may take longer. */
  run(tools: FaultTools): Promise<void>;
}

/** Faults that need a sentinel. */
const ofSentinel: readonly FaultKind[] = ['redis failover', 'redis failover behind'];

/** The kinds that are possible among these. */
export const possibleKinds = (kinds: readonly FaultKind[], hasSentinel: boolean): readonly FaultKind[] =>
  kinds.filter((kind) => hasSentinel || !ofSentinel.includes(kind));

/** Plans the faults of one round. @param gaps how long is between faults, in relation to a long run */
export function planRound(random: Random, kinds: readonly FaultKind[], gaps: number): readonly PlannedFault[] {
  return Array.from({ length: random.integer(3, 6) }, () => {
    const kind = chooseKind(random, kinds);
    return {
      kind,
      beforeMs: gaps * random.integer(2_000, 9_000),
      // What a lease, or the registration after a loss of the data, is about is over before the next one.
      afterMs: gaps * random.integer(5_000, 12_000),
      ...planFault(kind, random.fork()),
    };
  });
}

/** Chooses a kind of fault. The weights say how often each comes, in relation to the others. */
function chooseKind(random: Random, kinds: readonly FaultKind[]): FaultKind {
  const left = (Object.entries(weights) as [FaultKind, number][]).filter(([kind]) => kinds.includes(kind));
  let at = random.next() * left.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of left) {
    at -= weight;
    if (at < 0) return kind;
  }
  return 'clients cut';
}

type Planned = Pick<PlannedFault, 'what' | 'run'>;

/** Decides what is done, and when. */
function planFault(kind: FaultKind, random: Random): Planned {
  const any = random.integer(0, 2);
  const others = [0, 1, 2].filter((instance) => instance !== any);
  const another = random.pick(others);
  const one = random.pick(mortal);
  const beyondMs = random.integer(leaseMs, 2 * leaseMs) + leaseMs / 2;
  const fault = (what: string, run: (tools: FaultTools) => Promise<unknown>): Planned => ({
    what,
    run: (tools) => tools.ledger.during(kind, what, async () => void (await run(tools))),
  });
  /** Something that lasts for a time. */
  const lasting = (
    what: string,
    ms: number,
    begin: (stage: Stage) => unknown,
    end: (stage: Stage) => unknown,
  ): Planned =>
    fault(`${what} for ${ms} ms`, async ({ stage }) => {
      await begin(stage);
      await delay(ms);
      await end(stage);
    });
  const how = random.pick(['held', 'lost', 'refused'] as const);
  switch (kind) {
    case 'child killed':
    case 'child ended':
    case 'child stopped':
      return planChild(kind, any, random);
    case 'kill': {
      const awayMs = random.chance(0.5) ? random.integer(0, 4_000) : 0;
      return fault(`kill -9 of ${one}, which is away for ${awayMs} ms`, async ({ stage: { cluster } }) => {
        await cluster.kill(one);
        await delay(awayMs);
        await cluster.restart(one);
      });
    }
    case 'drain':
      return fault(`SIGTERM of ${one}`, async ({ stage: { cluster } }) => {
        cluster.balancer.setInRotation(one, false); // as failed health checks do
        await cluster.restart(one);
      });
    case 'freeze':
    case 'stall': {
      const ms = kind === 'stall' ? leaseMs / 3 : beyondMs;
      const what = `${kind} of ${any} for ${ms} ms`;
      return {
        what,
        run: ({ stage: { cluster }, ledger }) =>
          ledger.during(
            kind,
            what,
            async () => {
              await cluster.freeze(any);
              await delay(ms);
              cluster.thaw(any);
            },
            cluster.instances[any]?.pid,
          ),
      };
    }
    case 'partition':
      return lasting(
        `partition (${how}) of ${any} from Redis`,
        beyondMs,
        ({ cluster }) => cluster.partition(any, how),
        ({ cluster }) => cluster.heal(any),
      );
    case 'link partition':
    case 'link one way': {
      const isAlone = random.chance(0.5);
      const peers = isAlone ? others : [another];
      const isAsker = random.chance(0.5);
      const asks = peers.map((peer): LinkPair => [any, peer]);
      const isAsked = peers.map((peer): LinkPair => [peer, any]);
      const pairs = kind === 'link partition' ? [...asks, ...isAsked] : isAsker ? asks : isAsked;
      const ways = kind === 'link partition' ? 'in both ways' : isAsker ? 'as it asks' : 'as it is asked';
      return lasting(
        `link partition (${how}) of ${any} from ${peers.join(' and ')}, ${ways},`,
        beyondMs,
        ({ cluster }) => cluster.partitionLinks(pairs, how),
        ({ cluster }) => cluster.healLinks(),
      );
    }
    case 'upstream cut':
      return fault('upstream cut', async ({ stage }) => stage.upstreamProxy.resetAll());
    case 'upstream disk full':
      return lasting(
        'disk of the upstream full',
        random.integer(1_000, 6_000),
        ({ upstream }) => setDiskFull(upstream.pid, true),
        ({ upstream }) => setDiskFull(upstream.pid, false),
      );
    case 'clients cut':
      return fault('clients cut', async ({ cutClients }) => cutClients());
    default:
      return planRedisFault(kind, random, one, { fault, lasting });
  }
}

/** What is done to a process of a server. Which of those that live then is decided as a share of them. */
function planChild(kind: 'child killed' | 'child ended' | 'child stopped', any: number, random: Random): Planned {
  const share = random.next();
  const stoppedMs = random.integer(500, 4_000);
  const what = `${kind}, of ${any}${kind === 'child stopped' ? `, for ${stoppedMs} ms` : ''}`;
  const harm = async (pid: number): Promise<void> => {
    if (kind !== 'child stopped') return void process.kill(pid, kind === 'child killed' ? 'SIGKILL' : 'SIGTERM');
    await freeze(pid);
    await delay(stoppedMs);
    thaw(pid);
  };
  return {
    what,
    async run({ stage: { cluster }, ledger }) {
      const alive = await descendantsOf(cluster.instances[any]?.pid as number);
      const victim = alive[Math.floor(share * alive.length)];
      if (victim === undefined) return;
      await ledger.during(kind, `${what}: ${victim.command.split(' ').slice(1, 2)}`, () =>
        harm(victim.pid).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ESRCH' && !error.message.includes('ENOENT')) throw error; // it has just ended by itself
        }),
      );
    },
  };
}

interface Making {
  fault(what: string, run: (tools: FaultTools) => Promise<unknown>): Planned;
  lasting(what: string, ms: number, begin: (stage: Stage) => unknown, end: (stage: Stage) => unknown): Planned;
}

function planRedisFault(kind: FaultKind, random: Random, one: number, { fault, lasting }: Making): Planned {
  const redisOf = ({ cluster }: Stage) => cluster.redis;
  switch (kind) {
    case 'redis restart':
      return fault('Redis restarted with its data', ({ stage }) => redisOf(stage).restart({ keepData: true }));
    case 'redis empty':
      return fault('Redis restarted without its data', ({ stage }) => redisOf(stage).restart({ keepData: false }));
    case 'redis pause':
      return lasting(
        'Redis paused',
        random.integer(500, 5_000),
        (stage) => redisOf(stage).pause(),
        (stage) => redisOf(stage).resume(),
      );
    case 'redis full':
      return lasting(
        'Redis full',
        random.integer(1_000, 6_000),
        (stage) => redisOf(stage).fill(),
        (stage) => redisOf(stage).unfill(),
      );
    case 'redis full and kill': {
      const [fullMs, awayMs] = [random.integer(0, 9_000), random.integer(0, 3_000)];
      const what = `Redis full for ${fullMs + awayMs} ms, and kill -9 of ${one} after ${fullMs} ms`;
      return fault(what, async ({ stage }) => {
        await redisOf(stage).fill();
        await delay(fullMs);
        await stage.cluster.kill(one);
        await delay(awayMs);
        await redisOf(stage).unfill();
        await stage.cluster.restart(one);
      });
    }
    case 'redis disk full':
      return lasting(
        'disk of Redis full',
        random.integer(1_500, 7_000),
        (stage) => redisOf(stage).fillDisk(),
        (stage) => redisOf(stage).freeDisk(),
      );
    case 'redis slow': {
      const late = { latencyMs: random.integer(20, 400) };
      return lasting(
        `Redis slow by ${late.latencyMs} ms`,
        random.integer(2_000, 6_000),
        ({ cluster }) => cluster.redisProxies.map((proxy) => proxy.set({ toServer: late, toClient: late })),
        ({ cluster }) => cluster.redisProxies.map((proxy) => proxy.set({})),
      );
    }
    case 'redis failover':
    case 'redis failover behind': {
      const behindMs = kind === 'redis failover' ? 0 : random.integer(100, 1_000);
      const what = `the master of Redis killed, and its replica promoted${behindMs > 0 ? `, ${behindMs} ms behind` : ''}`;
      return fault(what, async ({ stage }) => {
        const sentinel = stage.sentinel as RedisSentinel;
        if (behindMs > 0) {
          await sentinel.partReplica();
          await delay(behindMs);
        }
        await sentinel.loseMaster();
        await sentinel.restoreReplica();
      });
    }
    default:
      return fault('scripts flushed', ({ stage }) => redisOf(stage).flushScripts());
  }
}
