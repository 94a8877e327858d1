import { randomBytes } from 'node:crypto';
import type { Store } from '../../store/store.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';

/** The keys by which states are sealed and opened. */
export interface StateKeys {
  /** All keys, that for new states first. Rejects with `StoreUnavailable` while none can be had. */
  all(): Promise<readonly [Buffer, ...Buffer[]]>;
  /** The same, after another look for what others may have made; not more often than once in a second. */
  afresh(): Promise<readonly Buffer[]>;
}

/** The keys that the operator has given, the newest first. */
export function configuredKeys(texts: readonly [string, ...string[]]): StateKeys {
  const [newest, ...older] = texts.map((text) => Buffer.from(text)) as [Buffer, ...Buffer[]];
  const keys = [newest, ...older] as const;
  return { all: async () => keys, afresh: async () => keys };
}

const secretName = 'request-state';
const secretBytes = 32;

/** What a client sends can name any key: the store is not asked for each (P8). */
const pauseMs = 1_000;
/** Whoever uses the key asks for it so often, so that the store keeps it, and that what happened to it there is noticed. */
const staleMs = 3_600_000;

/** Keys that were lost with the store's data, or made twice in that confusion: older ones than these open nothing more. */
const maxKeys = 4;

/**
 * A key that is made once and kept in the store, so that all instances have the same one; in memory it lives as long as the
 * process. A store that lost its data gets the key again from whoever has it.
 * @param now milliseconds of the monotonic clock
 */
export function storedKeys(store: Pick<Store, 'secrets' | 'onRecovered'>, now = () => performance.now()): StateKeys {
  let keys: readonly [Buffer, ...Buffer[]] | undefined;
  let asked: Promise<readonly [Buffer, ...Buffer[]]> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const own = randomBytes(secretBytes);

  const ask = async (): Promise<readonly [Buffer, ...Buffer[]]> => {
    askedAt = now();
    const kept = await store.secrets.keep(secretName, keys?.[0] ?? own);
    const older = (keys ?? []).filter((key) => !key.equals(kept));
    keys = [kept, ...older.slice(0, maxKeys - 1)];
    return keys;
  };
  const askOnce = (): Promise<readonly [Buffer, ...Buffer[]]> => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };

  store.onRecovered(() => {
    // Who seals or opens a state next asks by itself, and hears of a failure.
    if (keys !== undefined) askOnce().catch(() => undefined);
  });
  return {
    async all() {
      if (keys === undefined) return askOnce();
      const known = keys;
      if (now() - askedAt < staleMs) return known;
      return askOnce().catch((cause: unknown) => {
        if (cause instanceof StoreUnavailable) return known;
        throw cause;
      });
    },
    afresh: async () => (keys !== undefined && now() - askedAt < pauseMs ? keys : askOnce()),
  };
}
