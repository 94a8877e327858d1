import { afterEach, describe, expect, it } from 'vitest';
import { storedKeys } from '../../../src/core/keys/state-keys.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import type { Values } from '../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';

const memory = createMemoryStore({ maxEvents: 1, maxBytes: 1, maxAgeMs: 1_000 });
afterEach(() => memory.close());

/** A store that can be away and lose its data. */
function aStore() {
  const kept = { secret: undefined as Buffer | undefined, isAway: false, asked: 0 };
  const listeners: (() => void)[] = [];
  const values: Values = {
    ...memory.values,
    async keep(_kind, _name, candidate) {
      kept.asked += 1;
      if (kept.isAway) throw new StoreUnavailable('unreachable');
      kept.secret ??= candidate;
      return kept.secret;
    },
  };
  return {
    kept,
    values,
    onRecovered: (listener: () => void) => listeners.push(listener),
    recover: () => listeners.map((tell) => tell()),
  };
}

describe('the keys of request states', () => {
  it('are the same for all instances that share a store', async () => {
    expect(await storedKeys(memory).all()).toEqual(await storedKeys(memory).all());
    expect((await storedKeys(memory).all())[0]).toHaveLength(32);
  });

  it('are not available while the store is away, and are read again later', async () => {
    const store = aStore();
    const keys = storedKeys(store);
    store.kept.isAway = true;
    await expect(keys.all()).rejects.toThrow(StoreUnavailable);
    store.kept.isAway = false;
    expect(await keys.all()).toHaveLength(1);
  });

  it('[P7] stay the same when the store has lost its data, and are stored again', async () => {
    const store = aStore();
    const [one, two] = [storedKeys(store), storedKeys(store)];
    const before = await one.all();
    expect(await two.all()).toEqual(before);
    store.kept.secret = undefined;
    store.recover();
    expect(await storedKeys(store).all()).toEqual(before);
    expect(await one.all()).toEqual(before);
  });

  it('[P7] from before and after a loss of data both open states, if another instance stored its key first', async () => {
    const store = aStore();
    const keys = storedKeys(store);
    const [old] = await keys.all();
    const other = Buffer.alloc(32, 'x');
    store.kept.secret = other;
    store.recover();
    await expect.poll(() => keys.all(), { timeout: 30_000 }).toEqual([other, old]);
  });

  it('are read again each hour, so that the store keeps them, and stay valid while the store is away', async () => {
    let nowMs = 0;
    const store = aStore();
    const keys = storedKeys(store, () => nowMs);
    const before = await keys.all();
    store.kept.isAway = true;
    nowMs = 3_599_999;
    await keys.all();
    expect(store.kept.asked).toBe(1);
    nowMs = 3_600_000;
    expect(await keys.all()).toEqual(before);
    expect(store.kept.asked).toBe(2);
  });

  it('[P8] are not read from the store for each state that names an unknown key', async () => {
    let nowMs = 0;
    const store = aStore();
    const keys = storedKeys(store, () => nowMs);
    await keys.all();
    nowMs = 999;
    for (let state = 0; state < 10; state++) await keys.reread();
    expect(store.kept.asked).toBe(1);
    nowMs = 1_000;
    await Promise.all([keys.reread(), keys.reread()]);
    expect(store.kept.asked).toBe(2);
  });
});
