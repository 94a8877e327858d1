import type { Logger } from 'pino';
import type { GatewayConfig } from '../config/config.ts';
import { countAppends, countEvictions, measureCommands } from '../ops/metrics/collectors/store-metrics.ts';
import type { Metrics } from '../ops/metrics/metrics.ts';
import type { LogLimits } from '../store/event-log.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import type { memoryPolicyOf } from '../store/redis/diagnose/inspect.ts';
import type { Store } from '../store/store.ts';
import { detach } from '../util/boundary.ts';
import { readRedisTls } from './tls-files.ts';

/**
 * Creates the store of a gateway: in Redis if one is configured, else in memory. Rejects for a certificate that cannot
 * be read. The Redis client is loaded only when needed, because loading it takes a large part of a start.
 * @param metrics counts stored events and commands; undefined for no metrics
 */
export async function createStore(config: GatewayConfig, logger: Logger, metrics: Metrics | undefined): Promise<Store> {
  const store = await openStore(config, logger, metrics);
  return metrics === undefined ? store : { ...store, log: countAppends(store.log, metrics) };
}

async function openStore(config: GatewayConfig, logger: Logger, metrics: Metrics | undefined): Promise<Store> {
  const { redis, redisPrefix, redisTimeoutMs, logTotalMaxBytes } = config;
  const { leaseMs, recordTtlMs, mailboxMaxBytes } = config;
  const limits: LogLimits = {
    maxEvents: config.logMaxEvents,
    maxBytes: config.logMaxBytes,
    maxAgeMs: config.logMaxAgeMs,
    onEvicted: metrics && countEvictions(metrics),
  };
  if (redis === undefined) return createMemoryStore({ ...limits, maxTotalBytes: logTotalMaxBytes, recordTtlMs });
  const connection = { url: redis, tls: readRedisTls(config), commandTimeoutMs: redisTimeoutMs };
  const { createRedisStore } = await import('../store/redis/redis-store.ts');
  detach('background', warnOfEviction(connection, logger));
  return createRedisStore({
    ...connection,
    prefix: redisPrefix,
    limits,
    leaseMs,
    recordTtlMs,
    mailboxMaxBytes,
    onError: (cause) => logger.debug({ err: cause }, 'Redis connection'),
    observer: metrics && measureCommands(metrics),
  });
}

/**
 * Warns of a Redis that evicts sessions when its memory is full. The store itself reports a Redis that does not answer.
 */
async function warnOfEviction(connection: Parameters<typeof memoryPolicyOf>[0], logger: Logger): Promise<void> {
  try {
    const { memoryPolicyOf } = await import('../store/redis/diagnose/inspect.ts');
    const policy = await memoryPolicyOf(connection);
    if (policy === undefined || policy === 'noeviction') return;
    const detail = `Set maxmemory-policy noeviction instead of ${policy}. The gateway then waits while Redis is full.`;
    logger.warn({ detail }, 'Redis may evict sessions when its memory is full');
  } catch (cause) {
    logger.debug({ err: cause }, 'cannot read the eviction policy of Redis');
  }
}

/**
 * Creates the store of sessions that live as long as one client connection. No client resumes their events, but a slow
 * client reads them from this store. Its size is the allowed lag plus the largest message of a server.
 */
export function createConnectedStore(config: GatewayConfig): Store {
  const { logMaxEvents, logMaxBytes, logMaxAgeMs, logTotalMaxBytes, maxLineBytes } = config;
  const limits = { maxEvents: logMaxEvents, maxBytes: logMaxBytes + maxLineBytes, maxAgeMs: logMaxAgeMs };
  return createMemoryStore({
    ...limits,
    maxTotalBytes: Math.max(logTotalMaxBytes, limits.maxBytes),
    recordTtlMs: Number.POSITIVE_INFINITY, // a session ends with its connection, not earlier
  });
}
