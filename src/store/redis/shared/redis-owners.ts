import type { TaskOwnerStore } from '../../shared/owners.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';

/** What owners stand on. */
export interface RedisOwnersParts {
  readonly run: Commands['run'];
  readonly keys: Keys;
}

/** Owners as strings. */
export const createRedisOwners = ({ run, keys }: RedisOwnersParts): TaskOwnerStore => ({
  async set(thing, owner, forMs) {
    await run((client) => client.set(keys.owner(thing), owner, 'PX', Math.ceil(forMs)));
  },
  async find(thing) {
    return (await run((client) => client.getBuffer(keys.owner(thing)))) ?? undefined;
  },
});
