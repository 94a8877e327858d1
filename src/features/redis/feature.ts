import type { RedisFeature } from '../../app/features/stores.ts';
import { explainTrouble } from './diagnose/trouble.ts';

// The client is loaded only where there is a Redis, because loading it takes a large part of a start.
export const redis: RedisFeature = {
  open: async (options) => (await import('./redis-store.ts')).createRedisStore(options),
  inspect: async (connection) => (await import('./diagnose/inspect.ts')).inspectRedis(connection),
  memoryPolicyOf: async (connection) => (await import('./diagnose/inspect.ts')).memoryPolicyOf(connection),
  explain: explainTrouble,
};
