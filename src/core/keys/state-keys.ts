import { randomBytes } from 'node:crypto';
import type { Store } from '../store/store.ts';
import { ifUnavailable } from '../store/store-unavailable.ts';

/** The keys that seal and open states. */
export interface StateKeys {
  /** Returns all keys, the key for new states first. Rejects with `StoreUnavailable` while there is none. */
  all(): Promise<readonly [Buffer, ...Buffer[]]>;
  /** As `all`, after reading the store again for keys of others, at most once in a second. */
  reread(): Promise<readonly Buffer[]>;
}

/** Returns the operator's keys, the newest first. */
export function configuredKeys(texts: readonly [string, ...string[]]): StateKeys {
  const [newest, ...older] = texts.map((text) => Buffer.from(text)) as [Buffer, ...Buffer[]];
  const keys = [newest, ...older] as const;
  return { all: async () => keys, reread: async () => keys };
}

const secretName = 'request-state';
const secretBytes = 32;
/** How long the key is kept after its last use: the longest time for which a client may keep a state. */
const secretMs = 30 * 86_400_000;

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
export function storedKeys(store: Pick<Store, 'values' | 'onRecovered'>, now = () => performance.now()): StateKeys {
  let keys: readonly [Buffer, ...Buffer[]] | undefined;
  let pendingRead: Promise<readonly [Buffer, ...Buffer[]]> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const newKey = randomBytes(secretBytes);

  const read = async (): Promise<readonly [Buffer, ...Buffer[]]> => {
    readAt = now();
    const kept = await store.values.keep('secret', secretName, keys?.[0] ?? newKey, secretMs);
    const older = (keys ?? []).filter((key) => !key.equals(kept));
    keys = [kept, ...older.slice(0, maxKeys - 1)];
    return keys;
  };
  const readOnce = (): Promise<readonly [Buffer, ...Buffer[]]> => {
    pendingRead ??= read().finally(() => {
      pendingRead = undefined;
    });
    return pendingRead;
  };

  store.onRecovered(() => {
    // The next use of the keys reads again by itself and reports a failure.
    if (keys !== undefined) readOnce().catch(() => undefined);
  });
  return {
    async all() {
      if (keys === undefined) return readOnce();
      const known = keys;
      if (now() - readAt < staleMs) return known;
      return readOnce().catch(ifUnavailable(known));
    },
    reread: async () => (keys !== undefined && now() - readAt < pauseMs ? keys : readOnce()),
  };
}
