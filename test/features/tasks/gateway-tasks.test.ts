import { describe, expect, it } from 'vitest';
import { createMessage, type Message } from '../../../src/core/protocol/message/message.ts';
import { anonymous } from '../../../src/core/protocol/principal.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import type { ChangeListener } from '../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';
import { GatewayTasks, type TaskClient } from '../../../src/features/tasks/gateway-tasks.ts';
import type { RunningTask } from '../../../src/features/tasks/running-task.ts';
import { waitFor } from '../../support/wait-for.ts';

const ada: TaskClient = { principal: { ...anonymous, subject: 'ada' }, credentials: '', server: 's' };
const bob: TaskClient = { ...ada, principal: { ...anonymous, subject: 'bob' } };
const request = createMessage({ id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } });
const result = (value: object): Message => createMessage({ id: 1, result: { resultType: 'complete', ...value } });
const asking = (...keys: string[]): Message =>
  createMessage({
    id: 1,
    result: {
      resultType: 'input_required',
      inputRequests: Object.fromEntries(keys.map((key) => [key, { method: 'roots/list' }])),
      requestState: 'sealed',
    },
  });

/** Instances that share a store, in this process. */
function createInstances(options: { readonly maxTextBytes?: number; readonly ttlMs?: number } = {}) {
  const store = createMemoryStore({ maxEvents: 1, maxBytes: 1, maxAgeMs: 1_000 });
  const lost = new Set<string>();
  const listeners = new Map<string, ChangeListener>();
  const state: {
    isAway: boolean;
    isDeaf: boolean;
    onGet?: ((name: string) => Promise<undefined> | undefined) | undefined;
  } = { isAway: false, isDeaf: false };
  const orAway = <T>(work: () => Promise<T>): Promise<T> =>
    state.isAway ? Promise.reject(new StoreUnavailable('unreachable')) : work();
  const start = (name: string) => {
    const told: string[] = [];
    const tasks = new GatewayTasks({
      values: {
        get: (kind, name) => state.onGet?.(name) ?? orAway(() => store.values.get(kind, name)),
        set: (...found) => orAway(() => store.values.set(...found)),
        keep: (...found) => orAway(() => store.values.keep(...found)),
      },
      changes: {
        publish: (topic, text) => (state.isDeaf ? Promise.resolve() : store.changes.publish(topic, text)),
        subscribe(topic, listener) {
          listeners.set(name, listener);
          return store.changes.subscribe(topic, listener);
        },
      },
      reservations: { reserve: (...found) => orAway(() => store.reservations.reserve(...found)) },
      instances: { current: () => name, isAlive: async (instance) => !lost.has(instance) },
      ttlMs: 60_000,
      maxRunMs: 60_000,
      maxTextBytes: 1_000_000,
      onTask: ({ what }) => void told.push(what),
      onFailed: (cause) => {
        throw cause;
      },
      ...options,
    });
    const sent: Message[] = [];
    const followed: string[] = [];
    let cancellations = 0;
    const call = {
      request,
      mayAsk: true,
      isHarmless: false,
      hasPoint: false,
      send: (message: Message) => void sent.push(message),
      point: (): string | undefined => undefined,
      follow: (point: string) => void followed.push(point),
      cancel: () => {
        cancellations += 1;
      },
    };
    const begin = (client = ada) => tasks.begin(client, call, () => true);
    const opened: RunningTask[] = [];
    /** Goes on with the call of a task that another instance has begun. */
    const open = (task: RunningTask) => {
      opened.push(task);
      return call;
    };
    return { tasks, call, begin, open, opened, told, sent, followed, cancellations: () => cancellations };
  };
  return {
    start,
    state,
    lose: (name: string) => lost.add(name),
    missAt: (name: string) => listeners.get(name)?.onMissed(),
  };
}

const textOf = (record: { readonly text: Buffer } | undefined): unknown =>
  JSON.parse(record?.text.toString() ?? 'null');

describe('a task', () => {
  it('has the state and the result of its call, on each instance, for its client alone', async () => {
    const { start } = createInstances();
    const [a, b] = [start('a'), start('b')];
    const task = await a.begin();
    const id = task?.id as string;
    for (const { tasks } of [a, b]) expect((await tasks.find(id, ada))?.facts.status).toBe('working');
    expect(await b.tasks.find(id, bob)).toBeUndefined();
    expect(await b.tasks.find(id, { ...ada, server: 'other' })).toBeUndefined();
    expect(await b.tasks.find(id, { ...ada, credentials: 'other' })).toBeUndefined();
    task?.response(result({ n: 1 }));
    const ended = await waitFor(async () =>
      (await b.tasks.find(id, ada))?.facts.status === 'completed' ? true : undefined,
    );
    expect(ended).toBe(true);
    expect(textOf(await b.tasks.find(id, ada))).toEqual({ resultType: 'complete', n: 1 });
    expect(a.told).toEqual(['created', 'completed']);
  });

  it('that nobody wants any more is not made, and neither is one without a store', async () => {
    const { start, state } = createInstances();
    const a = start('a');
    expect(await a.tasks.begin(ada, a.call, () => false)).toBeUndefined();
    expect(a.tasks.running).toBe(0);
    state.isAway = true;
    expect(await a.begin()).toBeUndefined();
    expect([a.told, a.tasks.running]).toEqual([[], 0]);
  });

  it('asks under new keys in each round, and sends its request again with all answers and the state', async () => {
    const { start } = createInstances();
    const a = start('a');
    const task = await a.begin();
    const id = task?.id as string;
    const seen: string[] = [];
    for (const round of [1, 2]) {
      task?.response(asking('k', 'l'));
      const keys = await waitFor(async () => {
        const record = await a.tasks.find(id, ada);
        return record?.facts.status === 'input_required' ? Object.keys(textOf(record) as object) : undefined;
      });
      seen.push(...keys);
      await a.tasks.answer(id, ada, new Map([[keys[0] as string, Buffer.from('{"n":1}')]]));
      expect(a.sent).toHaveLength(round - 1);
      // A second answer to the same question is ignored.
      await a.tasks.answer(id, ada, new Map([[keys[0] as string, Buffer.from('{"n":9}')]]));
      await a.tasks.answer(id, ada, new Map([[keys[1] as string, Buffer.from('{"n":2}')]]));
      await waitFor(() => (a.sent.length === round ? true : undefined));
      const { params } = JSON.parse(a.sent.at(-1)?.text.toString() ?? '');
      expect(params).toMatchObject({ requestState: 'sealed', inputResponses: { k: { n: 1 }, l: { n: 2 } }, name: 'x' });
    }
    expect(new Set(seen).size).toBe(4);
  });

  it('gets what another instance took for it, also if the announcement was missed', async () => {
    const { start, state, missAt } = createInstances();
    const [a, b] = [start('a'), start('b')];
    const task = await a.begin();
    const other = await a.begin();
    task?.response(asking('k'));
    await waitFor(async () =>
      (await b.tasks.find(task?.id ?? '', ada))?.facts.status === 'input_required' ? true : undefined,
    );
    state.isDeaf = true;
    await b.tasks.answer(task?.id ?? '', ada, new Map([['1-k', Buffer.from('{}')]]));
    await b.tasks.cancel(other?.id ?? '', ada);
    expect([a.sent.length, a.cancellations()]).toEqual([0, 0]);
    missAt('a');
    await waitFor(() => (a.sent.length === 1 && a.cancellations() === 1 ? true : undefined));
  });

  it('[P3] of a lost instance fails once, and the owner that comes back cannot change it', async () => {
    const { start, lose } = createInstances();
    const [a, b, c] = [start('a'), start('b'), start('c')];
    const task = await a.begin();
    const id = task?.id as string;
    lose('a');
    const found = await Promise.all([b.tasks.find(id, ada), c.tasks.find(id, ada)]);
    expect(found[0]).toEqual(found[1]);
    expect(textOf(found[0])).toMatchObject({ data: { reason: 'outcome_unknown' } });
    task?.response(result({ n: 1 }));
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    expect(await b.tasks.find(id, ada)).toEqual(found[0]);
    expect([...b.told, ...c.told]).toEqual(['failed']);
    expect(a.told).toEqual(['created']);
  });

  it('has its result also if its end is stored while somebody asks', async () => {
    const { start, state } = createInstances();
    const [a, b] = [start('a'), start('b')];
    const task = await a.begin();
    state.onGet = (name) => {
      if (!name.endsWith(' end')) return undefined;
      state.onGet = undefined;
      // The end is looked for before it is stored, and the state after that.
      return Promise.resolve(undefined);
    };
    task?.response(result({ n: 1 }));
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    expect(textOf(await b.tasks.find(task?.id ?? '', ada))).toEqual({ resultType: 'complete', n: 1 });
  });

  it('[P7] that ends while the store is away is stored when it is back', async () => {
    const { start, state } = createInstances();
    const a = start('a');
    const task = await a.begin();
    state.isAway = true;
    task?.response(result({ n: 1 }));
    await expect(a.tasks.find(task?.id ?? '', ada)).rejects.toThrow(StoreUnavailable);
    state.isAway = false;
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    expect((await a.tasks.find(task?.id ?? '', ada))?.facts.status).toBe('completed');
  });
});

describe('[P3] a task whose instance is lost', () => {
  const ids = (task: RunningTask | undefined) => task?.id ?? '';

  it('is read on by one other instance, if its call does not depend on the lost one', async () => {
    const { start, lose } = createInstances();
    const [a, b, c] = [start('a'), start('b'), start('c')];
    a.call.point = () => 'here';
    const id = ids(await a.begin());
    lose('a');
    const found = await Promise.all([b, c, b, c].map(({ tasks, open }) => tasks.find(id, ada, open)));
    expect(found.map((record) => record?.facts.status)).toEqual(['working', 'working', 'working', 'working']);
    await waitFor(() => (b.followed.length + c.followed.length > 0 ? true : undefined));
    expect([...b.followed, ...c.followed, ...b.sent, ...c.sent]).toEqual(['here']);
    const owner = b.opened.length > 0 ? b : c;
    owner.opened[0]?.response(result({ n: 1 }));
    await waitFor(() => (owner.tasks.running === 0 ? true : undefined));
    expect(textOf(await a.tasks.find(id, ada))).toEqual({ resultType: 'complete', n: 1 });
    expect([...b.told, ...c.told]).toEqual(['completed']);
  });

  it('is read on where it is known since its beginning, also if an operator has looked at it meanwhile', async () => {
    const { start, lose } = createInstances();
    const [a, b] = [start('a'), start('b')];
    a.call.hasPoint = true;
    const id = ids(await a.begin());
    a.call.point = () => 'here';
    expect(a.tasks.list()).toHaveLength(1);
    await waitFor(async () => ((await b.tasks.find(id, ada))?.facts.point === 'here' ? true : undefined));
    lose('a');
    await b.tasks.find(id, ada, b.open);
    await waitFor(() => (b.followed.length === 1 ? true : undefined));
  });

  it('[P3] is not said to have been refused if the instance that reads on cannot', async () => {
    const { start, lose } = createInstances();
    const [a, b] = [start('a'), start('b')];
    a.call.point = () => 'here';
    const id = ids(await a.begin());
    await waitFor(async () => ((await b.tasks.find(id, ada))?.facts.point === 'here' ? true : undefined));
    lose('a');
    await b.tasks.find(id, ada, b.open);
    await waitFor(() => (b.followed.length === 1 ? true : undefined));
    b.opened[0]?.fault('store_unavailable');
    await waitFor(() => (b.tasks.running === 0 ? true : undefined));
    expect(textOf(await b.tasks.find(id, ada))).toMatchObject({ data: { reason: 'outcome_unknown' } });
  });

  it('is left by an owner that comes back after another one has gone on with it', async () => {
    const { start, lose } = createInstances();
    const [a, b] = [start('a'), start('b')];
    a.call.point = () => 'here';
    const task = await a.begin();
    lose('a');
    await b.tasks.find(ids(task), ada, b.open);
    await waitFor(() => (b.followed.length === 1 ? true : undefined));
    task?.fault('outcome_unknown');
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    expect(a.cancellations()).toBe(0);
    b.opened[0]?.response(result({ n: 1 }));
    await waitFor(() => (b.tasks.running === 0 ? true : undefined));
    expect(textOf(await a.tasks.find(ids(task), ada))).toEqual({ resultType: 'complete', n: 1 });
  });

  it('is read on where an instance that stops could not, and cancelled once nobody reads on', async () => {
    const { start } = createInstances();
    const [a, b] = [start('a'), start('b')];
    a.call.point = () => 'here';
    const task = await a.begin();
    a.tasks.leave();
    task?.fault('outcome_unknown');
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    expect((await b.tasks.find(ids(task), ada, b.open))?.facts.status).toBe('working');
    await waitFor(() => (b.followed.length === 1 ? true : undefined));
    b.opened[0]?.fault('outcome_unknown');
    await waitFor(() => (b.tasks.running === 0 ? true : undefined));
    expect(textOf(await a.tasks.find(ids(task), ada))).toMatchObject({ data: { reason: 'outcome_unknown' } });
    expect([a.cancellations(), b.cancellations()]).toEqual([0, 1]);
  });

  it('is read on again after the loss of the next one, and fails if nothing can be read', async () => {
    const { start, lose } = createInstances();
    const [a, b, c] = [start('a'), start('b'), start('c')];
    a.call.point = () => 'here';
    const id = ids(await a.begin());
    for (const [gone, next] of [
      ['a', b],
      ['b', c],
    ] as const) {
      lose(gone);
      await next.tasks.find(id, ada, next.open);
      await waitFor(() => (next.followed.length === 1 ? true : undefined));
    }
    c.opened[0]?.fault('outcome_unknown');
    await waitFor(() => (c.tasks.running === 0 ? true : undefined));
    expect(textOf(await a.tasks.find(id, ada))).toMatchObject({ data: { reason: 'outcome_unknown' } });
  });

  it('is sent again once if that is harmless, however many ask, and not once more after another loss', async () => {
    const { start, lose } = createInstances();
    const [a, b, c] = [start('a'), start('b'), start('c')];
    a.call.isHarmless = true;
    const id = ids(await a.begin());
    lose('a');
    await Promise.all([b, c, c, b].map(({ tasks, open }) => tasks.find(id, ada, open)));
    await waitFor(() => (b.sent.length + c.sent.length > 0 ? true : undefined));
    expect([...b.sent, ...c.sent].map(({ text }) => text.toString())).toEqual([request.text.toString()]);
    const [second, third] = b.sent.length > 0 ? (['b', c] as const) : (['c', b] as const);
    lose(second);
    const lost = await third.tasks.find(id, ada, third.open);
    expect(textOf(lost)).toMatchObject({ data: { reason: 'outcome_unknown' } });
    expect(third.sent).toEqual([]);
  });

  it('fails if its call acts, or has asked', async () => {
    const { start, lose } = createInstances();
    const [a, b] = [start('a'), start('b')];
    const acting = ids(await a.begin());
    a.call.isHarmless = true;
    const asked = await a.begin();
    asked?.response(asking('k'));
    await waitFor(async () => ((await b.tasks.find(ids(asked), ada))?.facts.rounds === 1 ? true : undefined));
    await a.tasks.answer(ids(asked), ada, new Map([['1-k', Buffer.from('{}')]]));
    await waitFor(() => (a.sent.length === 1 ? true : undefined));
    lose('a');
    for (const id of [acting, ids(asked)])
      expect(textOf(await b.tasks.find(id, ada, b.open))).toMatchObject({ data: { reason: 'outcome_unknown' } });
    expect([b.sent, b.opened]).toEqual([[], []]);
  });

  it('goes on with the answers that were given before and after the loss', async () => {
    const { start, lose } = createInstances();
    const [a, b] = [start('a'), start('b')];
    const task = await a.begin();
    task?.response(asking('k', 'l'));
    await waitFor(async () => ((await b.tasks.find(ids(task), ada))?.facts.rounds === 1 ? true : undefined));
    await a.tasks.answer(ids(task), ada, new Map([['1-k', Buffer.from('{"n":1}')]]));
    lose('a');
    const left = await waitFor(async () => {
      const record = await b.tasks.find(ids(task), ada, b.open);
      const keys = Object.keys(textOf(record) as object);
      return keys.length === 1 ? keys : undefined;
    });
    expect(left).toEqual(['1-l']);
    await waitFor(() => (b.opened.length === 1 ? true : undefined));
    await b.tasks.answer(ids(task), ada, new Map([['1-l', Buffer.from('{"n":2}')]]), b.open);
    await waitFor(() => (b.sent.length === 1 ? true : undefined));
    const { params } = JSON.parse(b.sent[0]?.text.toString() ?? '');
    expect(params).toMatchObject({ requestState: 'sealed', inputResponses: { k: { n: 1 }, l: { n: 2 } } });
    // The next round has keys of its own.
    b.opened[0]?.response(asking('k'));
    const keys = await waitFor(async () => {
      const record = await b.tasks.find(ids(task), ada);
      return record?.facts.rounds === 2 ? Object.keys(textOf(record) as object) : undefined;
    });
    expect(keys).toEqual(['2-k']);
  });

  it('is handed over by an instance that stops, and a lost call is left to the next one', async () => {
    const { start } = createInstances();
    const [a, b] = [start('a'), start('b')];
    a.call.isHarmless = true;
    const [running, lost] = [await a.begin(), await a.begin()];
    a.tasks.leave();
    lost?.fault('draining');
    await a.tasks.close();
    expect([a.sent, a.tasks.running]).toEqual([[], 0]);
    for (const task of [running, lost])
      expect((await b.tasks.find(ids(task), ada, b.open))?.facts.status).toBe('working');
    await waitFor(() => (b.sent.length === 2 ? true : undefined));
    for (const task of b.opened) task.response(result({ n: 1 }));
    await waitFor(() => (b.tasks.running === 0 ? true : undefined));
    for (const task of [running, lost]) expect((await b.tasks.find(ids(task), ada))?.facts.status).toBe('completed');
  });
});

describe('[P8] the tasks of one client', () => {
  it('are watched at most 1,000 times at one instance, until the watch or the task ends', async () => {
    const { start } = createInstances();
    const a = start('a');
    const task = await a.begin();
    const states: string[] = [];
    const tell = ({ facts }: { readonly facts: { readonly status: string } }) => void states.push(facts.status);
    const stops = await Promise.all([1, 2, 3].map(() => a.tasks.watch(task?.id ?? '', ada, tell)));
    expect([a.tasks.roomToWatch(ada), a.tasks.roomToWatch(bob)]).toEqual([997, 1_000]);
    stops[0]?.();
    stops[0]?.();
    expect(a.tasks.roomToWatch(ada)).toBe(998);
    task?.response(result({}));
    await waitFor(() => (a.tasks.roomToWatch(ada) === 1_000 ? true : undefined));
    expect(states.filter((each) => each === 'completed')).toHaveLength(2);
  });

  it('are at most 1,000, and leave room for others', async () => {
    const { start } = createInstances();
    const a = start('a');
    a.call.mayAsk = false;
    const made = await Promise.all(Array.from({ length: 1_001 }, () => a.begin()));
    expect(made.filter((task) => task !== undefined)).toHaveLength(1_000);
    expect(await a.begin(bob)).toBeDefined();
  });

  it('have at most 16 MiB, and what does not fit fails with a reason', async () => {
    const { start } = createInstances({ maxTextBytes: 8 * 1024 * 1024 });
    const a = start('a');
    const tasks = await Promise.all(Array.from({ length: 3 }, () => a.begin()));
    const large = result({ text: 'x'.repeat(7 * 1024 * 1024) });
    for (const task of tasks) task?.response(large);
    await waitFor(() => (a.tasks.running === 0 ? true : undefined));
    const states = await Promise.all(
      tasks.map(async (task) => (await a.tasks.find(task?.id ?? '', ada))?.facts.status),
    );
    expect(states).toEqual(['completed', 'completed', 'failed']);
  });

  it('are counted by all instances together', async () => {
    const { start } = createInstances({ maxTextBytes: 8 * 1024 * 1024 });
    const [a, b] = [start('a'), start('b')];
    for (const { call } of [a, b]) call.mayAsk = false;
    const large = result({ text: 'x'.repeat(7 * 1024 * 1024) });
    const tasks = [await a.begin(bob), await b.begin(bob), await a.begin(bob)];
    for (const task of tasks) task?.response(large);
    await waitFor(() => (a.tasks.running + b.tasks.running === 0 ? true : undefined));
    const states = await Promise.all(
      tasks.map(async (task) => (await a.tasks.find(task?.id ?? '', bob))?.facts.status),
    );
    expect(states.sort()).toEqual(['completed', 'completed', 'failed']);
    const made = await Promise.all(Array.from({ length: 1_001 }, (_, n) => (n % 2 ? a : b).begin()));
    expect(made.filter((task) => task !== undefined)).toHaveLength(1_000);
  });

  it('have room for their questions, too, or fail with a reason', async () => {
    const { start } = createInstances({ maxTextBytes: 8 * 1024 * 1024 });
    const a = start('a');
    const tasks = await Promise.all(Array.from({ length: 3 }, () => a.begin()));
    const k = { method: 'elicitation/create', params: { message: 'x'.repeat(7 * 1024 * 1024) } };
    const question = { id: 1, result: { resultType: 'input_required', inputRequests: { k } } };
    for (const task of tasks) task?.response(createMessage(question));
    const states = await waitFor(async () => {
      const found = await Promise.all(tasks.map((task) => a.tasks.find(task?.id ?? '', ada)));
      const all = found.map((record) => record?.facts.status);
      return all.includes('working') ? undefined : all;
    });
    expect(states.sort()).toEqual(['failed', 'input_required', 'input_required']);
  });

  it('are forgotten after their time', async () => {
    const { start } = createInstances({ ttlMs: 20 });
    const a = start('a');
    a.call.mayAsk = false;
    const made = await Promise.all(Array.from({ length: 1_000 }, () => a.begin()));
    expect(await a.begin()).toBeUndefined();
    made[0]?.response(result({}));
    // A full table of tasks is no reason to lose a result.
    expect((await a.tasks.find(made[0]?.id ?? '', ada))?.facts.status).not.toBe('failed');
    expect(await waitFor(() => a.begin())).toBeDefined();
    expect(a.told).not.toContain('failed');
    expect(await a.tasks.find(made[0]?.id ?? '', ada)).toBeUndefined();
  });
});
