import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisSentinel } from '../support/redis-sentinel.ts';
import type { FaultKind, Ledger } from './ledger.ts';
import { lateMs, masterLostMs, type Stage } from './stage.ts';

const everyMs = 100;

/** Faults of ours that make Redis late. */
const ofRedis: readonly FaultKind[] = [
  'redis restart',
  'redis empty',
  'redis pause',
  'redis failover',
  'redis failover behind',
];
/** So long after such a fault it may still be late. */
const afterFaultMs = 1_500;

/** A time that a gateway stood still, by `performance.now()`. */
export interface Lateness {
  readonly pid: number;
  readonly from: number;
  readonly to: number;
}

/** Notes each time that a gateway stood still without a fault of ours. */
export function noteLateness(ledger: Ledger, { pid, from, to }: Lateness): void {
  const isOurs = ledger.faults.some(
    ({ frozen, beganAt, endedAt }) => frozen === pid && beganAt <= to && endedAt + everyMs >= from,
  );
  if (!isOurs) ledger.noteBusy(`gateway ${pid} stood still for ${Math.round(to - from)} ms`, from, to);
}

/** Reads what the gateways note themselves; see `lateness.mjs`. */
async function readLateness(folder: string, known: Map<string, number>): Promise<readonly Lateness[]> {
  const epoch = Date.now() - performance.now();
  const found: Lateness[] = [];
  for (const name of await readdir(folder)) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n').slice(0, -1);
    for (const line of lines.slice(known.get(name) ?? 0)) {
      const [from = 0, to = 0] = line.split(' ').map((at) => Number(at) - epoch);
      found.push({ pid: Number(name), from, to });
    }
    known.set(name, lines.length);
  }
  return found;
}

/**
 * Notes when the machine, Redis, this process or a gateway stood still for a moment, since others had the processors:
 * leases lapse then and commands time out, without a fault of ours. All of it is measured. This process carries what goes
 * between gateways and Redis.
 */
export function watchMachine(stage: Stage, ledger: Ledger): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const pause = (): Promise<unknown> => delay(everyMs, undefined, { signal: stopped.signal }).catch(() => undefined);
  const isOurs = (kinds: readonly FaultKind[]): boolean =>
    ledger.faults.some(({ kind, endedAt }) => kinds.includes(kind) && performance.now() - endedAt < afterFaultMs);

  const watch = async (name: string, faults: readonly FaultKind[], run: () => Promise<unknown>): Promise<void> => {
    while (!stopped.signal.aborted) {
      const startedAt = performance.now();
      const isAnswered = await run().then(
        () => true,
        () => false,
      );
      const tookMs = performance.now() - startedAt;
      if (isAnswered && tookMs > lateMs && !isOurs(faults))
        ledger.noteBusy(`${name} took ${Math.round(tookMs)} ms`, startedAt);
      await pause();
    }
  };
  const known = new Map<string, number>();
  const readAll = async (): Promise<void> => {
    for (const each of await readLateness(stage.lateness, known)) noteLateness(ledger, each);
  };
  const watchGateways = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await readAll();
      await pause();
    }
    await readAll();
  };
  const watchMaster = async ({ master }: RedisSentinel): Promise<void> => {
    let known = await master();
    for (let seenAt = performance.now(); !stopped.signal.aborted; await pause()) {
      const now = await master().catch(() => known);
      // What the former master took since may be lost.
      if (now !== known) ledger.noteFailover(seenAt - masterLostMs);
      known = now;
      seenAt = performance.now();
    }
  };
  const running = [
    ...(stage.sentinel === undefined ? [] : [watchMaster(stage.sentinel)]),
    watch('a timer', [], () => delay(1)),
    watch('Redis', ofRedis, () => stage.cluster.redis.command('PING')),
    watchGateways(),
  ];
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}
