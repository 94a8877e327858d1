import type { Rates } from '../../shared/rates.ts';
import type { Keys } from '../keys.ts';
import type { RunScript } from '../script.ts';

/** What rates stand on. */
export interface RedisRatesParts {
  readonly runScript: RunScript;
  readonly keys: Keys;
}

const perMs = 1_000;

/** Rates as strings: the time of Redis' clock, in microseconds, at which the debt is paid. They expire then. */
export function createRedisRates({ runScript, keys }: RedisRatesParts): Rates {
  return {
    async use(name, costMs) {
      const debt = await runScript('use-rate', [keys.rate(name)], [Math.round(costMs * perMs)]);
      return Number(debt) / perMs;
    },
  };
}
