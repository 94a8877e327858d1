import type { Logger } from 'pino';
import type { GatewayConfig } from '../config/config.ts';
import { type StorePlace, storePlaceOf } from '../config/store-place.ts';
import { longestLineBytes } from '../core/backend/backend.ts';
import type { StoreState } from '../core/ops/console-hook.ts';
import type { LogLimits } from '../core/store/event-log.ts';
import { createMemoryStore } from '../core/store/memory/memory-store.ts';
import type { MemoryLimits } from '../core/store/memory/memory-tables.ts';
import type { ClusterStore, Store } from '../core/store/store.ts';
import { detach } from '../core/util/boundary.ts';
import { unreadMeter } from '../core/util/telemetry/meter.ts';
import type { GatewayTelemetry } from './create-telemetry.ts';
import { type Features, type GatewaySetup, needed } from './features/gateway-features.ts';
import type { RedisConnection, RedisFeature, StoreInFiles } from './features/stores.ts';
import { readTlsFiles } from './tls-files.ts';

/** The store of a gateway. */
export interface OpenStore {
  readonly store: Store;
  /** The same store if it is in Redis, where other instances share it; else undefined. */
  readonly shared: ClusterStore | undefined;
  /** The same store if it can outlive this process, so that sessions of lost instances can be taken over. */
  readonly lasting: ClusterStore | undefined;
  /** The directory of the store; undefined if it is in memory or in Redis. */
  readonly directory: string | undefined;
  /** Counts the sessions in files; undefined if they are in memory or in Redis. */
  readonly countInFiles: (() => number) | undefined;
}

/** Returns the function that reports where sessions are kept, and whether they can be. */
export function storeStateOf({
  shared,
  lasting,
  directory,
}: Pick<OpenStore, 'shared' | 'lasting' | 'directory'>): () => StoreState {
  const isUp = (store: ClusterStore): boolean => store.healthyForMs() > 0;
  if (shared !== undefined) return () => ({ kind: 'redis', isUp: isUp(shared) });
  if (lasting === undefined) return () => ({ kind: 'memory', isUp: true });
  return () => ({ kind: 'files', isUp: isUp(lasting), directory });
}

/** How the store reports its commands, and counts its events. */
type StoreReports = Pick<GatewayTelemetry, 'emit' | 'meterOf' | 'metrics'>;

/**
 * Creates the store of a gateway: in Redis if one is configured, else in files or in memory. Rejects for a certificate
 * that cannot be read, and for a directory that cannot be used.
 */
export async function createStore(
  { config, features, environment }: GatewaySetup,
  logger: Logger,
  telemetry: StoreReports,
): Promise<OpenStore> {
  const { replay, derived } = config;
  const { redis } = config.cluster;
  const { meterOf, metrics } = telemetry;
  const limits: LogLimits = { ...config.derived.logLimits, evicted: meterOf?.('eventsEvicted') };
  const counted = <S extends Store>(store: S): S =>
    metrics === undefined ? store : { ...store, log: metrics.countAppends(store.log) };
  if (redis === undefined) {
    const { recordTtlMs } = derived;
    const memoryLimits = { ...limits, maxTotalBytes: replay.totalMaxSizeBytes, recordTtlMs };
    const place = storePlaceOf(config, environment);
    const files = place && (await openFiles(place, features, memoryLimits, logger, telemetry));
    const lasting = files && counted(files);
    const store = lasting ?? counted(createMemoryStore(memoryLimits));
    return {
      store,
      shared: undefined,
      lasting,
      directory: lasting && place?.directory,
      countInFiles: files?.sessionCount,
    };
  }
  const feature = needed(features.redis, '--redis');
  const shared = counted(await openRedis(feature, redis, limits, config, logger, telemetry));
  return { store: shared, shared, lasting: shared, directory: undefined, countInFiles: undefined };
}

/**
 * How often changes in the directory are synced to the disk, in milliseconds. A power failure can lose the changes of
 * this time, as with `appendfsync everysec` of Redis. If only the process ends, nothing is lost.
 */
const storeSyncMs = 1_000;

/** Opens the store in files; undefined if that is not possible, and memory will do. */
async function openFiles(
  { directory, isOptional }: StorePlace,
  features: Features,
  limits: MemoryLimits,
  logger: Logger,
  { emit }: StoreReports,
): Promise<StoreInFiles | undefined> {
  if (features.files === undefined && isOptional) return undefined;
  const files = needed(features.files, '--replay.store');
  const options = { directory, limits, syncMs: storeSyncMs, emit };
  const store = await files.open(options).catch((cause: Error) => {
    if (!isOptional) throw cause;
    logger.warn({ detail: cause.message, help: memoryHelp }, 'sessions are kept in memory, and are lost on a restart');
    return undefined;
  });
  if (store === undefined) return undefined;
  const { sessions, bytes, damaged, isRepaired } = store.found;
  logger.info({ store: directory, sessions, bytes }, 'the store resumes with the state in its files');
  if (damaged > 0 || isRepaired)
    logger.warn({ store: directory, damaged, isRepaired, detail: damageDetail }, 'the files of the store are damaged');
  return store;
}

const memoryHelp =
  'Name another directory with --replay.store file:DIRECTORY, or set --replay.store memory to keep sessions in memory without this line.';

const damageDetail =
  'Something has changed the files, or the disk is failing. Damaged parts were skipped: a few sessions or events may be missing.';

async function openRedis(
  feature: RedisFeature,
  redis: string,
  limits: LogLimits,
  config: GatewayConfig,
  logger: Logger,
  { emit, meterOf }: StoreReports,
): Promise<ClusterStore> {
  const { redisTimeoutMs, recordTtlMs } = config.derived;
  const connection = {
    url: redis,
    tls: readTlsFiles('cluster.tls', config.cluster.tls),
    commandTimeoutMs: redisTimeoutMs,
  };
  detach('background', warnOfEviction(feature, connection, logger));
  return feature.open({
    ...connection,
    prefix: config.cluster.prefix,
    limits,
    leaseMs: config.cluster.leaseMs,
    recordTtlMs,
    onError: (cause) => logger.debug({ err: cause }, 'Redis connection'),
    telemetry: { emit, commandSeconds: meterOf?.('redisSeconds') ?? unreadMeter },
  });
}

/**
 * Warns of a Redis that evicts sessions when its memory is full. The store itself reports a Redis that does not answer.
 */
async function warnOfEviction(feature: RedisFeature, connection: RedisConnection, logger: Logger): Promise<void> {
  try {
    const policy = await feature.memoryPolicyOf(connection);
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
export function createConnectedStore({ replay, derived: { logLimits } }: GatewayConfig): Store {
  const maxBytes = logLimits.maxBytes + longestLineBytes;
  return createMemoryStore({
    ...logLimits,
    maxBytes,
    maxTotalBytes: Math.max(replay.totalMaxSizeBytes, maxBytes),
    recordTtlMs: Number.POSITIVE_INFINITY, // a session ends with its connection, not earlier
  });
}
