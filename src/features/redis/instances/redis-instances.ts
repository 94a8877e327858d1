import { randomBytes } from 'node:crypto';
import type { Instances, LeaseRenewal } from '../../../core/store/instances.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import type { RedisAccess } from '../redis-access.ts';

/**
 * Stores leases as keys that expire, and the addresses of all instances in one hash.
 * @param leaseMs the duration of a lease after a renewal
 */
export function createRedisInstances(access: RedisAccess, leaseMs: number): Instances {
  const { run, runScript, keys, lifetimes } = access;

  const readStoreGeneration = async (): Promise<Omit<LeaseRenewal, 'held'>> => {
    const candidate = randomBytes(12).toString('base64url');
    try {
      const [storeGeneration, dataAgeMs, nowMs] = (await runScript(
        'store-generation',
        [keys.storeGeneration],
        [candidate, lifetimes.storeGenerationMs],
      )) as [Buffer, number, number];
      return { storeGeneration: storeGeneration.toString(), dataAgeMs, leaseEndsMs: nowMs + leaseMs };
    } catch (error) {
      // A store that lost its data and is already full again: the new generation gets its name once there is room.
      if (error instanceof StoreUnavailable && error.reason === 'full')
        return { storeGeneration: '', dataAgeMs: 0, leaseEndsMs: 0 };
      throw error;
    }
  };

  // One command for each lease, since the leases of a cluster are in different slots. All commands are sent at once.
  const areAlive = (names: readonly string[]): Promise<boolean[]> =>
    Promise.all(names.map(async (name) => (await run((client) => client.get(keys.lease(name)))) === 'alive'));

  return {
    async join(name) {
      const [held, generation] = await Promise.all([
        runScript('join', [keys.lease(name)], [leaseMs]),
        readStoreGeneration(),
      ]);
      return { held: held === 1, ...generation };
    },

    async renew(name) {
      // A full Redis accepts this.
      const [state, generation] = await Promise.all([
        run((client) => client.getex(keys.lease(name), 'PX', leaseMs)),
        readStoreGeneration(),
      ]);
      return { held: state === 'alive', ...generation };
    },

    async leave(name) {
      await run((client) => client.del(keys.lease(name)));
      await run((client) => client.hdel(keys.addresses, name));
    },

    areAlive,

    async publishAddress(name, address) {
      // A full Redis accepts the first one, which keeps what is known.
      await run((client) => client.pexpire(keys.addresses, lifetimes.addressesMs));
      await run((client) => client.hset(keys.addresses, name, address));
      await run((client) => client.pexpire(keys.addresses, lifetimes.addressesMs));
    },

    async addressOf(name) {
      return (await run((client) => client.hget(keys.addresses, name))) ?? undefined;
    },

    async addresses() {
      const all = Object.entries(await run((client) => client.hgetall(keys.addresses)));
      const living = await areAlive(all.map(([name]) => name));
      const lost = all.filter((_, index) => living[index] !== true).map(([name]) => name);
      if (lost.length > 0) await run((client) => client.hdel(keys.addresses, ...lost));
      return new Map(all.filter((_, index) => living[index] === true));
    },

    async declareDead(name) {
      // A name with a lease is not set. It never gets one again: a renewal that reads `dead` has lost the lease.
      const lease = keys.lease(name);
      if ((await run((client) => client.set(lease, 'dead', 'PX', lifetimes.deadMs, 'NX'))) === 'OK') return true;
      return (await run((client) => client.get(lease))) === 'dead';
    },
  };
}
