import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../resume/random.ts';
import { freeze, thaw } from '../support/freeze.ts';
import { descendantsOf } from '../support/processes.ts';
import weights from './fault-weights.json' with { type: 'json' };
import type { FaultKind, Ledger } from './ledger.ts';
import { leaseMs, type Stage } from './stage.ts';

/** Only these are killed and drained, so that what instance 0 uses is seen over the whole run. */
const mortal = [1, 2] as const;

/** What the faults are brought about with. */
export interface FaultTools {
  readonly stage: Stage;
  readonly ledger: Ledger;
  readonly random: Random;
  /** Cuts what the clients of this round have open. */
  cutClients(): void;
}

/** Chooses the next fault. The weights say how often each comes, in relation to the others. */
export function chooseFault(random: Random, kinds: readonly FaultKind[]): FaultKind {
  const left = (Object.entries(weights) as [FaultKind, number][]).filter(([kind]) => kinds.includes(kind));
  let at = random.next() * left.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of left) {
    at -= weight;
    if (at < 0) return kind;
  }
  return 'clients cut';
}

/** Brings a fault about and resolves when it is over: what it does to clients may take longer. */
export async function bringAbout(kind: FaultKind, tools: FaultTools): Promise<void> {
  const { stage, ledger, random } = tools;
  const { cluster } = stage;
  const { redis } = cluster;
  const any = random.integer(0, 2);
  const one = mortal[random.integer(0, 1)] as number;
  const beyond = random.integer(leaseMs, 2 * leaseMs) + leaseMs / 2;
  const on = (what: string, run: () => Promise<unknown>): Promise<void> =>
    ledger.during(kind, what, async () => void (await run()));
  const children: Record<string, (pid: number) => Promise<void>> = {
    'child killed': async (pid) => void process.kill(pid, 'SIGKILL'),
    'child ended': async (pid) => void process.kill(pid, 'SIGTERM'),
    'child stopped': async (pid) => {
      await freeze(pid);
      await delay(random.integer(500, 4_000));
      thaw(pid);
    },
  };
  const harm = children[kind];
  if (harm !== undefined) {
    const alive = await descendantsOf(cluster.instances[any]?.pid as number);
    const victim = alive[random.integer(0, alive.length - 1)];
    if (victim === undefined) return;
    return on(`${kind}, of ${any}: ${victim.command.split(' ').slice(1, 2)}`, () =>
      harm(victim.pid).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ESRCH' && !error.message.includes('ENOENT')) throw error; // it has just ended by itself
      }),
    );
  }
  switch (kind) {
    case 'kill':
      return on(`kill -9 of ${one}`, async () => {
        await cluster.kill(one);
        if (random.chance(0.5)) await delay(random.integer(0, 4_000));
        await cluster.restart(one);
      });
    case 'drain':
      return on(`SIGTERM of ${one}`, async () => {
        cluster.balancer.setInRotation(one, false); // as failed health checks do
        await cluster.restart(one);
      });
    case 'freeze':
    case 'stall':
      return on(`${kind} of ${any}`, async () => {
        await cluster.freeze(any);
        await delay(kind === 'stall' ? leaseMs / 3 : beyond);
        cluster.thaw(any);
      });
    case 'partition': {
      const how = (['held', 'lost', 'refused'] as const)[random.integer(0, 2)];
      return on(`partition (${how}) of ${any}`, async () => {
        await cluster.partition(any, how);
        await delay(beyond);
        await cluster.heal(any);
      });
    }
    case 'redis restart':
      return on('Redis restarted with its data', () => redis.restart({ keepData: true }));
    case 'redis empty':
      return on('Redis restarted without its data', () => redis.restart({ keepData: false }));
    case 'redis pause':
      return on('Redis paused', async () => {
        await redis.pause();
        await delay(random.integer(500, 5_000));
        redis.resume();
      });
    case 'redis full':
      return on('Redis full', async () => {
        await redis.fill();
        await delay(random.integer(1_000, 6_000));
        await redis.unfill();
      });
    case 'redis full and kill':
      return on(`Redis full, and kill -9 of ${one}`, async () => {
        await redis.fill();
        await delay(random.integer(0, 9_000));
        await cluster.kill(one);
        await delay(random.integer(0, 3_000));
        await redis.unfill();
        await cluster.restart(one);
      });
    case 'redis slow':
      return on('Redis slow', async () => {
        const late = { latencyMs: random.integer(20, 400) };
        for (const proxy of cluster.redisProxies) proxy.set({ toServer: late, toClient: late });
        await delay(random.integer(2_000, 6_000));
        for (const proxy of cluster.redisProxies) proxy.set({});
      });
    case 'scripts flushed':
      return on('scripts flushed', () => redis.flushScripts());
    case 'upstream cut':
      return on('upstream cut', async () => stage.upstreamProxy.resetAll());
    default:
      return on('clients cut', async () => tools.cutClients());
  }
}
