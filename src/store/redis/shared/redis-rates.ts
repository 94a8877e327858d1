import type { Rates } from '../../shared/rates.ts';
import type { Keys } from '../keys.ts';
import type { RunScript } from '../script.ts';

/** The parts that rates in Redis are built from. */
export interface RedisRatesParts {
  readonly runScript: RunScript;
  readonly keys: Keys;
}

const microsecondsPerMs = 1_000;

/** Stores each rate as the time by Redis' clock, in microseconds, at which its debt is paid. The key expires then. */
export function createRedisRates({ runScript, keys }: RedisRatesParts): Rates {
  return {
    async use(name, costMs) {
      const debt = await runScript('use-rate', [keys.rate(name)], [Math.round(costMs * microsecondsPerMs)]);
      return Number(debt) / microsecondsPerMs;
    },
  };
}
