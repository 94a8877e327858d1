import { randomBytes } from 'node:crypto';
import type { Store } from '../../store/store.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';

/** The keys that seal and open states. */
export interface StateKeys {
  /** Returns all keys, the key for new states first. Rejects with `StoreUnavailable` while there is none. */
  all(): Promise<readonly [Buffer, ...Buffer[]]>;
  /** As `all`, after reading the store again for keys of others, at most once in a second. */
  afresh(): Promise<readonly Buffer[]>;
}

/** Returns the operator's keys, the newest first. */
export function configuredKeys(texts: readonly [string, ...string[]]): StateKeys {
  const [newest, ...older] = texts.map((text) => Buffer.from(text)) as [Buffer, ...Buffer[]];
  const keys = [newest, ...older] as const;
  return { all: async () => keys, afresh: async () => keys };
}

const secretName = 'request-state';
const secretBytes = 32;

/**
 * The least time between two reads of the store. A client's state can name any key, and must not cause a read each time
 * (P8).
 */
const pauseMs = 1_000;
/** How often a used key is read again. That keeps it in the store, and notices a key that changed there. */
const staleMs = 3_600_000;

/**
 * How many keys are kept. There is more than one only after a store lost its data; older keys than these open no state.
 */
const maxKeys = 4;

/**
 * Returns a key that is made once and kept in the store, so that all instances share it. In memory the key lives as
 * long as the process. A store that lost its data gets the key back from an instance that has it.
 * @param now returns milliseconds of the monotonic clock
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
    // The next use of the keys reads again by itself and reports a failure.
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
