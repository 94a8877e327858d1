import { randomBytes } from 'node:crypto';
import type { UsedNames } from '../../shared/used-names.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';

/** The parts that used names in Redis are built from. */
export interface RedisUsedNamesParts {
  readonly run: Commands['run'];
  readonly keys: Keys;
}

const valueBytes = 9;

/** Stores each name as a string that expires. Only the first SET with NX succeeds. */
export const createRedisUsedNames = ({ run, keys }: RedisUsedNamesParts): UsedNames => ({
  async use(name, ttlMs) {
    const key = keys.usedName(name);
    const value = randomBytes(valueBytes).toString('base64url');
    const reply = await run((client) => client.set(key, value, 'PX', Math.max(1, Math.ceil(ttlMs)), 'NX'));
    // The client of a Redis Cluster repeats a command whose answer was lost. The value is then already this one.
    return reply === 'OK' || (await run((client) => client.get(key))) === value;
  },
});
