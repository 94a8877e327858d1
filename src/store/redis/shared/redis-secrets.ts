import type { Secrets } from '../../shared/secrets.ts';
import { StoreUnavailable } from '../../store-unavailable.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';
import type { Lifetimes } from '../lifetimes.ts';

/** What secrets stand on. */
export interface RedisSecretsParts {
  readonly run: Commands['run'];
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
}

/** Secrets as strings. */
export function createRedisSecrets({ run, keys, lifetimes: { secretMs } }: RedisSecretsParts): Secrets {
  return {
    async keep(name, candidate) {
      const key = keys.secret(name);
      const there = await run((client) => client.getexBuffer(key, 'PX', secretMs));
      if (there !== null) return there; // read first: a full Redis refuses the write
      if ((await run((client) => client.set(key, candidate, 'PX', secretMs, 'NX'))) === 'OK') return candidate;
      const kept = await run((client) => client.getBuffer(key));
      if (kept === null) throw new StoreUnavailable('unreachable'); // emptied in between
      return kept;
    },
  };
}
