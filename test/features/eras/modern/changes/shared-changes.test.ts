import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RerunPolicy } from '../../../../../src/core/call/rerun.ts';
import { anonymous } from '../../../../../src/core/protocol/principal.ts';
import { createMemoryChanges } from '../../../../../src/core/store/memory/memory-tables.ts';
import type { ChangeListener, Changes } from '../../../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../../../src/core/store/store-unavailable.ts';
import { maxAnnouncedUris } from '../../../../../src/features/eras/modern/changes/peer-announcements.ts';
import { acknowledgeWaitMs } from '../../../../../src/features/eras/modern/changes/peers.ts';
import { ModernServer } from '../../../../../src/features/eras/modern/modern-server.ts';
import { createFakeServer, type FakeBackend } from '../../../../support/fake-backend.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { call, createClient, discovered, readRequest, subscriptionKey } from '../shared-fixture.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const acknowledged = 'notifications/subscriptions/acknowledged';
const updatedMethod = 'notifications/resources/updated';
const toolsMethod = 'notifications/tools/list_changed';
const uri = 'test://a';

/** Changes that can be away, and can be missed. */
function createChanges() {
  const memory = createMemoryChanges();
  const how = { isAway: false };
  const listeners: ChangeListener[] = [];
  const changes: Changes = {
    async publish(topic, text) {
      if (how.isAway) throw new StoreUnavailable('unreachable');
      await memory.publish(topic, text);
    },
    async subscribe(topic, listener) {
      if (how.isAway) throw new StoreUnavailable('unreachable');
      listeners.push(listener);
      return memory.subscribe(topic, listener);
    },
  };
  return { changes, how, listeners };
}

/** An instance whose processes acknowledge what they are asked to tell of, unless `isMute`. */
function createInstance(changes: Changes | undefined, { isMute = false, isRemote = false } = {}) {
  const live = new Map<FakeBackend, Map<unknown, object>>();
  const server = createFakeServer(({ id, method, params }, backend) => {
    const listens = live.get(backend) ?? new Map();
    live.set(backend, listens);
    if (method === 'server/discover') backend.says({ jsonrpc: '2.0', id, result: discovered });
    else if (method === 'notifications/cancelled') listens.delete((params as { requestId: unknown }).requestId);
    else if (method === 'tools/call') backend.says({ jsonrpc: '2.0', id, result: {} });
    else if (method === 'subscriptions/listen' && !isMute) {
      const { notifications } = params as { notifications: object };
      listens.set(id, notifications);
      const _meta = { [subscriptionKey]: id };
      backend.says({ jsonrpc: '2.0', method: acknowledged, params: { _meta, notifications } });
    }
  });
  const cuts: string[] = [];
  const modern = new ModernServer({
    server: {
      ...{ name: 'fake', digest: '', open: server.open, isRemote, startTimeoutMs: 9_000 },
      ...{ onBackendExit: 'restore', reruns: new RerunPolicy() },
    },
    era: 'modern',
    openForProbe: server.open,
    version: '1',
    limits: {
      ...{ maxSharedCalls: 1_000, maxQueuedBytes: 1024 * 1024, graceMs: 1_000 },
      ...{ requestIdleMs: 600_000, requestTotalMs: 600_000 },
    },
    emit: ({ type }) => void (type === 'filters-truncated' && cuts.push('cut')),
    changes,
  });
  const listens = (): object[] => [...(live.get(server.backend)?.values() ?? [])];
  return {
    ...{ server, modern, listens, cuts },
    async start() {
      modern.start();
      await vi.advanceTimersByTimeAsync(1);
    },
    /** Opens a subscription as a client of the modern era does. */
    async listen(notifications: object, waitMs = 50) {
      const { got, answer } = createClient();
      let leave = (): void => undefined;
      const onCancelled = (listener: (why: 'left') => void): void => {
        leave = () => listener('left');
      };
      const request = readRequest(call('l', 'subscriptions/listen', { notifications }));
      modern.request(request, undefined, Object.assign(answer, { onCancelled }) as never, { principal: anonymous });
      await vi.advanceTimersByTimeAsync(waitMs);
      const heard = (): unknown[] =>
        got.items.slice(1).map(({ method, params }) => {
          expect(params._meta).toEqual({ [subscriptionKey]: 'l' });
          return params.uri ?? method;
        });
      return { got, heard, leave: () => leave() };
    },
    /** The process says on each of its subscriptions that something has changed. */
    async says(method: string, ...all: readonly object[]) {
      for (const id of live.get(server.backend)?.keys() ?? []) {
        const _meta = { [subscriptionKey]: id };
        for (const params of all.length === 0 ? [{}] : all) {
          server.backend.says({ jsonrpc: '2.0', method, params: { _meta, ...params } });
        }
      }
      await vi.advanceTimersByTimeAsync(1);
    },
  };
}

async function createPair() {
  const { changes, ...store } = createChanges();
  const [here, there] = [createInstance(changes), createInstance(changes)];
  await here.start();
  await there.start();
  return { ...store, changes, here, there, end: () => Promise.all([here.modern.drain(0), there.modern.drain(0)]) };
}

describe('modern subscriptions across instances', () => {
  it('get each change of every instance’s process once, under their own id, after the acknowledgement', async () => {
    const { here, there, end } = await createPair();
    expect(there.listens()).toEqual([]);
    const { heard, got } = await here.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
    expect(got.items.map(({ method }) => method)).toEqual([acknowledged]);
    expect(there.listens()).toEqual([{ toolsListChanged: true, resourceSubscriptions: [uri] }]);
    await there.says(updatedMethod, { uri });
    await there.says(toolsMethod);
    await here.says(updatedMethod, { uri });
    expect(heard()).toEqual([uri, toolsMethod, uri]);
    await end();
  });

  it('get only the changes that they want, and unwanted changes are not subscribed to', async () => {
    const { here, there, end } = await createPair();
    const lists = await here.listen({ toolsListChanged: true });
    const resources = await here.listen({ resourceSubscriptions: [uri] });
    await there.says(toolsMethod);
    expect([lists.heard(), resources.heard()]).toEqual([[toolsMethod], []]);
    lists.leave();
    await vi.advanceTimersByTimeAsync(50);
    expect(there.listens()).toEqual([{ resourceSubscriptions: [uri] }]);
    resources.leave();
    await vi.advanceTimersByTimeAsync(50);
    expect(there.listens()).toEqual([]);
    await end();
  });

  it('of the others are the first request of a process that starts later', async () => {
    const { changes } = createChanges();
    const [here, there] = [createInstance(changes), createInstance(changes)];
    await here.start();
    const { heard } = await here.listen({ toolsListChanged: true });
    expect(there.server.opened).toEqual([]);
    await there.start();
    const [, first] = there.server.backend.sent.items;
    expect(first).toMatchObject({
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true } },
    });
    await there.says(toolsMethod);
    expect(heard()).toEqual([toolsMethod]);
    await Promise.all([here.modern.drain(0), there.modern.drain(0)]);
  });

  it('get all changes as possible when a process elsewhere is lost or ended, which is not restarted for them', async () => {
    const { here, there } = await createPair();
    const { heard } = await here.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
    there.server.backend.ends();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(heard()).toEqual([toolsMethod, uri]);
    expect(there.server.opened).toHaveLength(1);
    await there.start();
    await there.says(toolsMethod);
    expect(heard()).toEqual([toolsMethod, uri, toolsMethod]);
    await there.modern.drain(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(heard()).toEqual([toolsMethod, uri, toolsMethod, toolsMethod, uri]);
    await here.modern.drain(0);
  });

  it('[P7] are only delayed by a store that is away: missed changes become a change of anything', async () => {
    const { here, there, how, end } = await createPair();
    const first = await here.listen({ toolsListChanged: true });
    how.isAway = true;
    const second = await here.listen({ resourceSubscriptions: [uri] }, acknowledgeWaitMs - 2);
    expect(second.got.items).toEqual([]);
    await vi.advanceTimersByTimeAsync(4);
    expect(second.got.items).toHaveLength(1);
    await there.says(toolsMethod);
    expect(first.heard()).toEqual([]);
    how.isAway = false;
    await waitFor(
      () => there.listens().some((filter) => 'resourceSubscriptions' in filter) && first.heard().length > 0,
    );
    expect(first.heard()).toEqual([toolsMethod]);
    expect(second.heard()).toEqual([uri]);
    expect(there.listens()).toEqual([{ toolsListChanged: true, resourceSubscriptions: [uri] }]);
    await end();
  });

  it('get all changes as possible after a gap, and the other instances are asked for their filters again', async () => {
    const { here, there, listeners, end } = await createPair();
    const { heard } = await here.listen({ toolsListChanged: true });
    listeners[0]?.onMissed();
    expect(heard()).toEqual([toolsMethod]);
    await there.says(toolsMethod);
    expect(heard()).toEqual([toolsMethod, toolsMethod]);
    await end();
  });

  it('wait at most one second for an instance that does not answer, and only once', async () => {
    const { changes } = createChanges();
    const [here, there] = [createInstance(changes), createInstance(changes, { isMute: true })];
    await here.start();
    await there.start();
    const first = await here.listen({ toolsListChanged: true }, acknowledgeWaitMs - 2);
    expect(first.got.items).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(first.got.items).toHaveLength(1);
    expect((await here.listen({ resourceSubscriptions: [uri] })).got.items).toHaveLength(1);
    await Promise.all([here.modern.drain(0), there.modern.drain(0)]);
  });

  it('of an instance that was silent for long are forgotten until it announces itself again', async () => {
    const { here, there, how, end } = await createPair();
    const { heard } = await here.listen({ toolsListChanged: true });
    how.isAway = true;
    await vi.advanceTimersByTimeAsync(150_000);
    expect(there.listens()).toEqual([]);
    how.isAway = false;
    await waitFor(() => heard().length > 0); // it may have missed something
    expect(there.listens()).toEqual([{ toolsListChanged: true }]);
    await end();
  });

  it('[P8] announce a limited number of resources to other instances, and the operator is told', async () => {
    const { here, there, end } = await createPair();
    const uris = Array.from({ length: maxAnnouncedUris + 1 }, (_, index) => `test://${index}`);
    await here.listen({ resourceSubscriptions: uris.slice(0, maxAnnouncedUris) });
    await here.listen({ resourceSubscriptions: uris.slice(maxAnnouncedUris) });
    expect(there.listens()).toEqual([{ resourceSubscriptions: uris.slice(0, maxAnnouncedUris) }]);
    expect(here.cuts).toEqual(['cut']);
    await here.listen({ resourceSubscriptions: ['x'.repeat(50_000)] });
    expect(here.listens()).toHaveLength(3);
    expect(there.listens()).toHaveLength(1);
    await end();
  });

  it('[P8] of many instances make each process subscribe to a limited number of resources, and the operator is told', async () => {
    const { here, there, changes, end } = await createPair();
    const third = createInstance(changes);
    await third.start();
    const urisOf = (name: string): string[] =>
      Array.from({ length: maxAnnouncedUris }, (_, index) => `${name}://${index}`);
    await here.listen({ resourceSubscriptions: urisOf('a') });
    await there.listen({ resourceSubscriptions: urisOf('b') });
    const [asked] = third.listens() as { resourceSubscriptions: string[] }[];
    expect(asked?.resourceSubscriptions).toHaveLength(maxAnnouncedUris);
    expect(third.cuts).toEqual(['cut']);
    await third.modern.drain(0);
    await end();
  });

  it('[P8] get a change of anything when changes come faster than they can be announced', async () => {
    const { here, there, end } = await createPair();
    const { heard } = await here.listen({ resourceSubscriptions: [uri] });
    // Nobody asks for these, so that none of them is passed on.
    const many = Array.from({ length: 1_000 }, (_, n) => ({ uri: 'test://other', n }));
    await there.says(updatedMethod, ...many);
    expect(heard()).toEqual([]);
    await there.says(updatedMethod, { uri: 'test://other' });
    expect(heard()).toEqual([uri]);
    await end();
  });

  it('[P8] that come and go make instances announce their filters at a limited rate', async () => {
    const { here, there, end } = await createPair();
    const before = there.server.backend.sent.items.length;
    for (let n = 0; n < 100; n++) (await here.listen({ resourceSubscriptions: [`test://${n}`] }, 1)).leave();
    await vi.advanceTimersByTimeAsync(100);
    expect(there.listens()).toEqual([]);
    expect(there.server.backend.sent.items.length - before).toBeLessThan(20);
    await end();
  });

  it('[P7] that began while the store was away are told of what they may have missed', async () => {
    const { changes, how } = createChanges();
    const [here, there] = [createInstance(changes), createInstance(changes)];
    await there.start();
    how.isAway = true;
    await here.start();
    const { heard } = await here.listen({ toolsListChanged: true }, 1_500);
    await there.says(toolsMethod); // nobody has asked for it
    how.isAway = false;
    await waitFor(() => there.listens().length > 0, { what: 'the announcement' });
    await vi.advanceTimersByTimeAsync(120_000);
    expect(there.listens()).toEqual([{ toolsListChanged: true }]);
    expect(heard()).toEqual([toolsMethod]);
    await Promise.all([here.modern.drain(0), there.modern.drain(0)]);
  });

  it('get no news of an instance that joins', async () => {
    const { changes } = createChanges();
    const here = createInstance(changes);
    await here.start();
    const { heard } = await here.listen({ toolsListChanged: true }, 1_500);
    const there = createInstance(changes);
    await there.listen({ promptsListChanged: true }, 1_500);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(heard()).toEqual([]);
    await Promise.all([here.modern.drain(0), there.modern.drain(0)]);
  });

  it('of a remote server, or without a shared store, announce nothing to other instances', async () => {
    const { changes, listeners } = createChanges();
    for (const instance of [createInstance(changes, { isRemote: true }), createInstance(undefined)]) {
      await instance.start();
      expect((await instance.listen({ toolsListChanged: true })).got.items).toHaveLength(1);
      await instance.modern.drain(0);
    }
    expect(listeners).toEqual([]);
  });
});
