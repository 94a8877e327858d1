import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { StoreUnavailable } from '../../src/core/store/store-unavailable.ts';
import { createRedisStore } from '../../src/features/redis/redis-store.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { startRedis } from '../support/redis-server.ts';
import { loadMs, waitFor, withDeadline } from '../support/wait-for.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import {
  freshPrefix,
  openRedisStore,
  redisOptions,
  startedForAll,
  untilAnswered,
  waitUntilHealthy,
} from './redis-fixture.ts';
import { textsOf } from './store-fixture.ts';

const reasonOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'answered',
    (error: unknown) => (error instanceof StoreUnavailable ? error.reason : error),
  );

describe('the Redis store, when Redis', () => {
  const redis = startedForAll(() => startRedis());
  let store: ClusterStore;
  const stores: ClusterStore[] = [];
  const open = async (options: Partial<Parameters<typeof openRedisStore>[0]> = {}): Promise<ClusterStore> => {
    const opened = await openRedisStore({ url: redis().url, prefix: freshPrefix(), commandTimeoutMs: 300, ...options });
    stores.push(opened);
    return opened;
  };
  beforeEach(async () => {
    store = await open();
    await store.sessions.create('s', aRecord());
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  it('[F10] forgets its scripts: calls go on, in their order', async () => {
    const writer = createLogWriter(store, 's');
    expect(await writer.append({ stream: 1, text: 'first' })).toBe('stored');
    for (let round = 0; round < 5; round += 1) {
      await redis().flushScripts();
      const texts = Array.from({ length: 20 }, (_, index) => `${round} ${index}`);
      const outcomes = await Promise.all(texts.map((text) => writer.append({ stream: 1, text })));
      expect(new Set(outcomes)).toEqual(new Set(['stored']));
    }
    expect(await store.log.read('s', 1, undefined, 1_000)).toMatchObject({ broken: false, atTail: true });
  });

  it('[F10] [P5] forgets its scripts far away: a call does not overtake those that are to be sent again', async () => {
    await using proxy = await startNetProxy(redis().port);
    const far = await open({ url: proxy.urlOf(redis().url), commandTimeoutMs: 5_000 });
    await far.sessions.create('t', aRecord());
    const writer = createLogWriter(far, 't');
    await writer.append({ stream: 1, text: 'first' });
    await redis().flushScripts();
    const ms = 100;
    proxy.set({ toClient: { latencyMs: ms } });
    const outcomes = [writer.append({ stream: 1, text: 'a' })];
    await delay(ms / 2);
    outcomes.push(writer.append({ stream: 1, text: 'b' }));
    // Now the script is sent again for the first one, and the second one is not refused yet.
    await delay((3 * ms) / 4);
    outcomes.push(writer.append({ stream: 1, text: 'c' }));
    expect(await Promise.all(outcomes)).toEqual(['stored', 'stored', 'stored']);
    expect(textsOf(await far.log.read('t', 1, undefined, 10))).toEqual(['first', 'a', 'b', 'c']);
  });

  it('[F10] [P7] has answered while the gateway was busy for longer than a command may take: the answer counts', async () => {
    const asked = store.sessions.find('s');
    const until = performance.now() + 450;
    while (performance.now() < until);
    expect(await reasonOf(asked)).toBe('answered');
    expect(store.healthyForMs()).toBeGreaterThan(0);
  });

  it.each([0, 1, 5])(
    '[F10] loses its reply after %i bytes: the append, asked again, is in the log once',
    async (bytes) => {
      await using proxy = await startNetProxy(redis().port);
      const far = await open({ url: proxy.urlOf(redis().url) });
      await far.sessions.create('t', aRecord());
      const batch = createLogWriter(far, 't').make({ stream: 1, text: 'a' }, { stream: 1, text: 'b' });
      await far.log.append('t', epoch, 0, []); // the script is there, so that the next reply is the outcome
      proxy.set({ toClient: { cutAfterBytes: bytes } });
      expect(await reasonOf(far.log.append('t', epoch, 0, batch))).toBe('unreachable');
      expect(far.healthyForMs()).toBe(0);
      proxy.set({});
      await waitUntilHealthy(far);
      const again = await far.log.append('t', epoch, 0, batch);
      expect(bytes === 0 ? ['stored', 'already'] : ['already']).toContain(again.outcome);
      expect(textsOf(await far.log.read('t', 1, undefined, 10))).toEqual(['a', 'b']);
    },
  );

  it('[P6] loses the reply to a takeover: asked again, it is taken under the same epoch', async () => {
    await using proxy = await startNetProxy(redis().port);
    const far = await open({ url: proxy.urlOf(redis().url) });
    await far.sessions.create('t', aRecord());
    const from = { owner: 'instance-1', epoch };
    await far.sessions.takeOver('none', from, 'b'); // the script is there
    proxy.set({ toClient: { cutAfterBytes: 3 } });
    expect(await reasonOf(far.sessions.takeOver('t', from, 'b'))).toBe('unreachable');
    proxy.set({});
    await waitUntilHealthy(far);
    const found = await far.sessions.find('t');
    expect(found?.owner).toBe('b');
    expect(await far.sessions.takeOver('t', from, 'b')).toMatchObject({ outcome: 'taken', record: found });
  });

  it('is full: nothing is stored in part, renewals and ends still work, and then it goes on', async () => {
    const writer = createLogWriter(store, 's');
    expect(await writer.append({ stream: 1, text: 'a' })).toBe('stored');
    const before = await store.instances.join('me');
    const batch = writer.make(...Array.from({ length: 5 }, (_, index) => ({ stream: 1, text: `${index}` })));
    await store.sessions.create('ends', aRecord());
    const key = Buffer.from('key');
    await store.values.keep('secret', 'known', key, 60_000);
    await redis().fill();
    try {
      expect(await store.values.keep('secret', 'known', Buffer.from('other'), 60_000)).toEqual(key);
      expect(await reasonOf(store.values.keep('secret', 'new', key, 60_000))).toBe('full');
      expect(await reasonOf(store.log.append('s', epoch, 1, batch))).toBe('full');
      expect(await reasonOf(store.sessions.create('t', aRecord()))).toBe('full');
      expect(await reasonOf(store.instances.publishAddress('me', 'a:1'))).toBe('full');
      expect(await reasonOf(store.sessions.takeOver('s', { owner: 'instance-1', epoch }, 'b'))).toBe('full');
      const state = { tails: new Map(), newestStream: -1, pending: [] };
      expect(await reasonOf(store.sessions.register('t', aRecord(), 0, state))).toBe('full');
      expect(await store.sessions.register('s', aRecord({ owner: 'me' }), 1, state)).toBe('registered');
      expect(await store.instances.renew('me')).toMatchObject({ held: true, storeGeneration: before.storeGeneration });
      expect(await store.instances.join('new name')).toMatchObject({ held: true });
      expect(textsOf(await store.log.read('s', 1, undefined, 10))).toEqual(['a']);
      await store.sessions.end('ends');
      await store.sessions.renew(['s']);
      expect(await store.sessions.release('s', epoch)).toBe('done');
      expect(store.healthyForMs()).toBeGreaterThan(0);
      expect(await store.sessions.find('t')).toBeUndefined();
    } finally {
      await redis().unfill();
    }
    expect(await store.sessions.find('ends')).toBeUndefined();
    expect(await store.log.append('s', epoch, 1, batch)).toEqual({ outcome: 'stored' });
    expect(textsOf(await store.log.read('s', 1, undefined, 10))).toEqual(['a', '0', '1', '2', '3', '4']);
  });

  it('[P7] freezes: every call is unreachable in time, and it recovers by itself', async () => {
    let recoveries = 0;
    store.onRecovered(() => {
      recoveries += 1;
    });
    await store.instances.join('me');
    await redis().pause();
    try {
      const startedMs = performance.now();
      const asked = [store.sessions.find('s'), store.log.append('s', epoch, 0, []), store.instances.renew('me')];
      expect(await Promise.all(asked.map(reasonOf))).toEqual(['unreachable', 'unreachable', 'unreachable']);
      expect(performance.now() - startedMs).toBeLessThan(300 + loadMs);
      expect(store.healthyForMs()).toBe(0);
    } finally {
      redis().resume();
    }
    await waitFor(() => recoveries > 0, { what: 'the recovery' });
    expect(store.healthyForMs()).toBeGreaterThan(0);
    expect(await store.sessions.find('s')).toEqual(aRecord());
  });

  it('[P7] is behind a network that swallows everything: a new connection is made', async () => {
    await using proxy = await startNetProxy(redis().port);
    const far = await open({ url: proxy.urlOf(redis().url) });
    proxy.blackHoleAll();
    expect(await reasonOf(far.sessions.find('s'))).toBe('unreachable');
    await waitUntilHealthy(far);
    expect(await far.sessions.find('s')).toBeUndefined();
    await far.close();
    proxy.breakBlackHoles();
  });

  it('[P7] dies: calls in flight and later ones are unreachable at once; back empty, what owners register lives on', async () => {
    const own = await startRedis();
    const mine = await open({ url: own.url, commandTimeoutMs: 5_000 });
    const first = await mine.instances.join('me');
    await mine.sessions.create('t', aRecord());
    let recoveries = 0;
    mine.onRecovered(() => {
      recoveries += 1;
    });
    await own.pause();
    const inFlight = reasonOf(mine.sessions.find('t'));
    await own.kill();
    expect(await withDeadline(inFlight, { deadlineMs: loadMs })).toBe('unreachable'); // long before its time-out
    const startedMs = performance.now();
    expect(await reasonOf(mine.sessions.find('t'))).toBe('unreachable');
    expect(performance.now() - startedMs).toBeLessThan(loadMs);
    await own.restart({ keepData: false });
    await waitFor(() => recoveries > 0, { what: 'the recovery' });
    const renewal = await mine.instances.renew('me');
    expect(renewal.held).toBe(false);
    expect(renewal.storeGeneration).not.toBe(first.storeGeneration);
    expect(renewal.dataAgeMs).toBeLessThan(5_000);
    expect((await mine.log.append('t', epoch, 0, [])).outcome).toBe('no_record');
    const nothing = { tails: new Map(), newestStream: -1, pending: [] };
    expect(await mine.sessions.register('t', aRecord(), 0, nothing)).toBe('registered');
    expect((await mine.log.append('t', epoch, 0, [])).outcome).toBe('stored');
  });

  it('becomes a replica, that refuses writes: not healthy until it is a master again', async () => {
    const own = await startRedis();
    const mine = await open({ url: own.url });
    await own.cli('REPLICAOF', '127.0.0.1', '1');
    expect(await reasonOf(mine.sessions.create('t', aRecord()))).toBe('unreachable');
    expect(mine.healthyForMs()).toBe(0);
    expect(await reasonOf(mine.sessions.create('t', aRecord()))).toBe('unreachable');
    await own.cli('REPLICAOF', 'NO', 'ONE');
    await waitUntilHealthy(mine);
    expect(await untilAnswered(() => mine.sessions.create('t', aRecord()).then(() => true))).toBe(true);
  });

  it('[P6] loses a record but not its log: an older owner registers nothing, the newer one goes on', async () => {
    const prefix = freshPrefix();
    const mine = await open({ prefix });
    await mine.sessions.create('t', aRecord());
    await createLogWriter(mine, 't').append({ stream: 1, text: 'a' });
    const taken = await mine.sessions.takeOver('t', { owner: 'instance-1', epoch }, 'b');
    if (taken.outcome !== 'taken') throw new Error(taken.outcome);
    await redis().cli('DEL', ...(await redis().cli('KEYS', `${prefix}:*:record`)).split('\n'));
    const state = { tails: new Map(), newestStream: 1, pending: [] };
    expect(await mine.sessions.register('t', aRecord(), 1, state)).toBe('fenced');
    expect(await mine.sessions.register('t', taken.record, 0, taken.log)).toBe('registered');
    expect(await mine.log.read('t', 1, undefined, 1)).toMatchObject({ broken: true, ended: false });
    const next = createLogWriter(mine, 't', taken.record.epoch);
    expect(await next.append({ stream: 1, text: 'b' })).toBe('stored');
  });

  it('answers with an error: refused, with the cause and without any argument', async () => {
    const prefix = freshPrefix();
    const mine = await open({ prefix });
    await mine.sessions.create('t', aRecord());
    const [key = ''] = (await redis().cli('KEYS', `${prefix}:*:record`)).split('\n');
    await redis().cli('SET', key, 'not a hash');
    const error = await mine.sessions
      .amend('t', epoch, { clientState: Buffer.from('secret') })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ reason: 'refused', cause: { message: expect.stringContaining('WRONGTYPE') } });
    expect((error as Error).cause).not.toHaveProperty('command');
    expect(mine.healthyForMs()).toBeGreaterThan(0);
  });

  it('is not there at the start: calls are unreachable, until it is', async () => {
    const own = await startRedis();
    await own.kill();
    const mine = createRedisStore(redisOptions({ url: own.url }));
    stores.push(mine);
    let recoveries = 0;
    mine.onRecovered(() => {
      recoveries += 1;
    });
    expect(await reasonOf(mine.sessions.find('t'))).toBe('unreachable');
    expect(mine.healthyForMs()).toBe(0);
    await own.restart({ keepData: false });
    await waitUntilHealthy(mine);
    expect(await mine.sessions.find('t')).toBeUndefined();
    expect(recoveries).toBe(0); // nothing was written before
  });
});
