import type { TaskOwnerStore } from '../../shared/owners.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';

/** The parts that task owners in Redis are built from. */
export interface RedisOwnersParts {
  readonly run: Commands['run'];
  readonly keys: Keys;
}

/** Stores each task owner as a string that expires. */
export const createRedisOwners = ({ run, keys }: RedisOwnersParts): TaskOwnerStore => ({
  async set(task, owner, ttlMs) {
    await run((client) => client.set(keys.owner(task), owner, 'PX', Math.ceil(ttlMs)));
  },
  async find(task) {
    return (await run((client) => client.getBuffer(keys.owner(task)))) ?? undefined;
  },
});
