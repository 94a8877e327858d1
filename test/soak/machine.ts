import { setTimeout as delay } from 'node:timers/promises';
import type { FaultKind, Ledger } from './ledger.ts';
import { leaseMs, type Stage } from './stage.ts';

/** So late something may be without more than the usual work of others: well below a lease less its margin. */
const lateMs = 700;
/** Redis and this process, by which gateways reach it. The gateways give up a command after so long. */
const lateOnWayMs = leaseMs / 6;
const everyMs = 250;

/** Faults of ours that make a probe late. */
const ofGateways: readonly FaultKind[] = ['kill', 'redis full and kill', 'drain', 'freeze', 'stall'];
const ofRedis: readonly FaultKind[] = ['redis restart', 'redis empty', 'redis pause'];

/**
 * Notes when the machine itself stood still for a moment, since others had its processors: leases lapse then and commands
 * time out, without a fault of ours. Asks what is asked anyway, and looks how late its own timer is.
 */
export function watchMachine(stage: Stage, ledger: Ledger): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const isOurs = (kinds: readonly FaultKind[]): boolean =>
    ledger.faults.some(({ kind, endedAt }) => kinds.includes(kind) && performance.now() - endedAt < 2 * lateMs);

  const probe = async (
    name: string,
    faults: readonly FaultKind[],
    run: () => Promise<unknown>,
    most: number,
  ): Promise<void> => {
    const startedAt = performance.now();
    const isAnswered = await run().then(
      () => true,
      () => false,
    );
    const tookMs = performance.now() - startedAt;
    if (isAnswered && tookMs > most && !isOurs(faults))
      ledger.noteBusy(`${name} took ${Math.round(tookMs)} ms`, startedAt);
  };
  const watch = async (
    name: string,
    faults: readonly FaultKind[],
    run: () => Promise<unknown>,
    most = lateMs,
  ): Promise<void> => {
    while (!stopped.signal.aborted) {
      await probe(name, faults, run, most);
      await delay(everyMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  };
  const ask = (index: number) =>
    fetch(`${stage.cluster.instances[index]?.baseUrl}/healthz`, { signal: AbortSignal.timeout(20_000) });
  const running = [
    watch('a timer', [], () => delay(1), lateOnWayMs),
    watch('Redis', ofRedis, () => stage.cluster.redis.command('PING'), lateOnWayMs),
    ...[0, 1, 2].map((index) => watch(`instance ${index}`, ofGateways, () => ask(index))),
  ];
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}
