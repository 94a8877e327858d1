import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { LogLimits } from '../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../src/core/store/memory/memory-store.ts';
import type { Store } from '../../src/core/store/store.ts';
import { createMemoryClusterStore } from '../support/memory-cluster/memory-cluster-store.ts';
import { aRecord, createLogWriter, epoch, type LogWriter } from './log-writer.ts';
import { storeContract } from './store-contract.ts';
import { createTimedStore, textsOf } from './store-fixture.ts';

storeContract('memory', (limits) => createTimedStore((now) => createMemoryClusterStore(limits, now)));

describe('memory: what only this store can promise', () => {
  const limits: LogLimits = { maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: 10_000 };
  const stores: Store[] = [];

  async function openSession(overrides: Partial<LogLimits> = {}, now?: () => number): Promise<Store> {
    const store = createMemoryStore({ ...limits, ...overrides }, now);
    stores.push(store);
    await store.sessions.create('s', aRecord());
    return store;
  }

  afterEach(async () => {
    vi.useRealTimers();
    await Promise.all(stores.splice(0).map((store) => store.close()));
  });

  it.each([
    ['a small slice of a chunk', (chunk: Buffer) => chunk.subarray(100, 200), 100],
    ['an empty slice of a chunk', (chunk: Buffer) => chunk.subarray(0, 0), 0],
    ['the greater part of a chunk', (chunk: Buffer) => chunk.subarray(0, 40_000), 65_536],
  ])('[P8] keeps of %s no more than twice its bytes alive', async (_, slice, heldBytes) => {
    const store = await openSession();
    const chunk = Buffer.alloc(65_536, 'x');
    const data = slice(chunk);
    await store.log.append('s', epoch, 0, [{ stream: 1, seq: 1, previous: undefined, data, last: false }]);
    const found = await store.log.read('s', 1, undefined, 1);
    expect(textsOf(found)).toEqual(['x'.repeat(data.length)]);
    expect(found.outcome === 'ok' && found.events[0]?.data.buffer.byteLength).toBe(heldBytes);
  });

  it('[P8] frees evicted events, also those that a caller linked into a chain of whole events', async () => {
    const store = await openSession({ maxEvents: 1 });
    const first = { stream: 1, seq: 1, previous: undefined, data: Buffer.alloc(65_536), last: false };
    const second = { stream: 1, seq: 2, previous: { ...first, epoch }, data: Buffer.from('b'), last: false };
    const isFreed = watch(first.data);
    await store.log.append('s', epoch, 0, [first]);
    await store.log.append('s', epoch, 1, [second]);
    Object.assign(first, { data: undefined });
    Object.assign(second, { previous: undefined });
    expect(await isFreed()).toBe(true);
    expect(await store.log.read('s', 1, undefined, 1)).toMatchObject({ broken: true });
  });

  it('[P8] frees what is too old in a session that nobody touches', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const store = await openSession();
    const isFreed = watch(await appendOne(store));
    vi.advanceTimersByTime(9_000);
    expect(await isFreed()).toBe(false);
    vi.advanceTimersByTime(4_000);
    expect(await isFreed()).toBe(true);
  });

  it('stops its timer when it is closed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const store = await openSession();
    expect(vi.getTimerCount()).toBe(1);
    await store.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has a legal timer delay for any age', async () => {
    const timer = vi.spyOn(globalThis, 'setInterval');
    for (const maxAgeMs of [1, 4_000, 900_000, 2 ** 40, Number.POSITIVE_INFINITY]) await openSession({ maxAgeMs });
    expect(timer.mock.calls.map(([, delayMs]) => delayMs)).toEqual([1_000, 1_000, 60_000, 60_000, 60_000]);
    timer.mockRestore();
  });

  it('appends to a full log in time that does not grow with it', async () => {
    const timeOf = async (maxEvents: number): Promise<number> => {
      const store = await openSession({ maxEvents });
      const writer = createLogWriter(store, 's');
      const fill = writer.make(...Array.from({ length: maxEvents }, () => ({ stream: 1, text: '' })));
      await store.log.append('s', epoch, 0, fill);
      const startedMs = performance.now();
      for (let count = 0; count < 20_000; count += 1) await writer.append({ stream: 1, text: '' });
      return performance.now() - startedMs;
    };
    await timeOf(10); // warms up
    const [small, large] = [await timeOf(10), await timeOf(100_000)];
    // Moving 100,000 elements for each event would take thousands of times as long; the rest is room for noise.
    expect(large).toBeLessThan(small * 20 + 100);
  });

  it('[P8] keeps the bytes of all sessions within a limit, at the cost of the one that holds most', async () => {
    const store = createMemoryStore({ ...limits, maxTotalBytes: 1_000 });
    stores.push(store);
    const logs = await Promise.all(
      ['small', 'large'].map(async (key) => {
        await store.sessions.create(key, aRecord());
        return createLogWriter(store, key);
      }),
    );
    const [small, large] = logs as [LogWriter, LogWriter];
    await small.append({ stream: 1, text: 'x'.repeat(100) });
    for (let i = 0; i < 100; i++) await large.append({ stream: 1, text: 'y'.repeat(50) });
    const bytesOf = async (key: string): Promise<number> => {
      const found = await store.log.read(key, 1, undefined, 1_000);
      return found.outcome === 'ok' ? found.events.reduce((sum, { data }) => sum + data.length, 0) : 0;
    };
    expect(await bytesOf('small')).toBe(100);
    expect(await bytesOf('large')).toBeGreaterThan(700);
    expect(await bytesOf('large')).toBeLessThanOrEqual(900);
    await store.sessions.end('large');
    for (let i = 0; i < 12; i++) await small.append({ stream: 1, text: 'z'.repeat(75) });
    expect(await bytesOf('small')).toBe(1_000);
  });
});

/** Appends a buffer that nothing but the store holds, and returns it; the caller keeps only a watch on it. */
async function appendOne(store: Store): Promise<Buffer> {
  const data = Buffer.allocUnsafeSlow(65_536);
  await store.log.append('s', epoch, 0, [{ stream: 1, seq: 1, previous: undefined, data, last: false }]);
  return data;
}

/** Tells whether the garbage collector has taken an object. */
function watch(object: object): () => Promise<boolean> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const reference = new WeakRef(object);
  return async () => {
    await new Promise(setImmediate); // a WeakRef keeps its object until the current job ends
    collect();
    return reference.deref() === undefined;
  };
}
