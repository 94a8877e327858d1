import type { Secrets } from '../../shared/secrets.ts';
import { StoreUnavailable } from '../../store-unavailable.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';
import type { Lifetimes } from '../lifetimes.ts';

/** The parts that secrets in Redis are built from. */
export interface RedisSecretsParts {
  readonly run: Commands['run'];
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
}

/** Stores each secret as a string. */
export function createRedisSecrets({ run, keys, lifetimes: { secretMs } }: RedisSecretsParts): Secrets {
  return {
    async keep(name, candidate) {
      const key = keys.secret(name);
      const existing = await run((client) => client.getexBuffer(key, 'PX', secretMs));
      if (existing !== null) return existing; // read first, since a full Redis refuses writes
      if ((await run((client) => client.set(key, candidate, 'PX', secretMs, 'NX'))) === 'OK') return candidate;
      const kept = await run((client) => client.getBuffer(key));
      if (kept === null) throw new StoreUnavailable('unreachable'); // Redis lost the key in between
      return kept;
    },
  };
}
