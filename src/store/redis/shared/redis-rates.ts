import type { Rates } from '../../shared/rates.ts';
import type { RedisAccess } from '../redis-access.ts';

const microsecondsPerMs = 1_000;

/** Stores each rate as the time by Redis' clock, in microseconds, at which its debt is paid. The key expires then. */
export function createRedisRates({ runScript, keys }: RedisAccess): Rates {
  return {
    async use(name, costMs) {
      const debt = await runScript('use-rate', [keys.rate(name)], [Math.round(costMs * microsecondsPerMs)]);
      return Number(debt) / microsecondsPerMs;
    },
  };
}
