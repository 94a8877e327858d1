import type { Rates, Reservations, Values } from '../../../core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { hashedName } from '../keys.ts';
import type { RedisAccess } from '../redis-access.ts';

/** Stores each value as a string that expires. */
export const createRedisValues = ({ run, keys }: RedisAccess): Values => ({
  async get(kind, name) {
    return (await run((client) => client.getBuffer(keys.value(kind, name)))) ?? undefined;
  },

  async set(kind, name, value, ttlMs) {
    await run((client) => client.set(keys.value(kind, name), value, 'PX', wholeMs(ttlMs)));
  },

  // Both commands are sent at once. A full Redis refuses the first one, and the second one still finds a value.
  async keep(kind, name, candidate, ttlMs) {
    const key = keys.value(kind, name);
    return run(async (client) => {
      const setting = client.set(key, candidate, 'PX', wholeMs(ttlMs), 'NX');
      const [set, found] = await Promise.allSettled([setting, client.getexBuffer(key, 'PX', wholeMs(ttlMs))]);
      if (found.status === 'rejected') throw found.reason;
      if (found.value !== null) return found.value;
      if (set.status === 'rejected') throw set.reason;
      if (set.value === 'OK') return candidate; // it has expired since
      throw new StoreUnavailable('unreachable'); // Redis lost the key in between
    });
  },
});

/** Redis takes whole milliseconds, from 1. */
const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms));

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

/** Stores what the items of each name take as a hash, which expires with the last one. */
export const createRedisReservations = ({ runScript, keys }: RedisAccess): Reservations => ({
  async reserve(name, item, amount, ttlMs, limits) {
    const args = [hashedName(item), amount, wholeMs(ttlMs), limits.items, limits.amount];
    return (await runScript('reserve', [keys.reserved(name)], args)) === 1;
  },
});
