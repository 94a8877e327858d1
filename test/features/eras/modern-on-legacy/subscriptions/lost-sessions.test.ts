import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FakeBackend } from '../../../../support/fake-backend.ts';
import { createGroups, type GroupsFixture, opens } from '../groups-fixture.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

const acknowledged = 'notifications/subscriptions/acknowledged';
const listChanged = 'notifications/tools/list_changed';

function createListening(notifications: object, options: Partial<GroupsFixture> = {}) {
  const fixture = createGroups({
    isolation: 'principal',
    onBackendExit: 'end',
    onSend: ({ id, method }, backend) => {
      if (method === 'tools/list') backend.says({ jsonrpc: '2.0', id, result: { tools: [] } });
      if (method?.startsWith('resources/') || method === 'ping') backend.says({ jsonrpc: '2.0', id, result: {} });
    },
    ...options,
  });
  const { ask, fake } = fixture;
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  const passUntil = async (isDone: () => boolean): Promise<void> => {
    for (let n = 0; n < 500 && !isDone(); n++) await pass(1);
  };
  const listen = ask('subscriptions/listen', { params: { notifications } });
  const heard = (): string[] => listen.sink.messages.map(({ method }) => method);
  const sent = (): string[] => fake.backend.sent.items.map(({ method }) => method);
  return { ...fixture, listen, heard, sent, pass, passUntil, begun: () => passUntil(() => listen.given !== undefined) };
}

describe('[R5.09] a subscription whose session has ended', () => {
  it('subscribes its resources again, also if a call of another client has opened the next session', async () => {
    const { ask, fake, heard, sent, pass, passUntil, begun } = createListening({ resourceSubscriptions: ['a:b'] });
    await begun();
    fake.backend.ends();
    await pass(10);
    const list = ask('tools/list');
    await passUntil(() => list.given !== undefined);
    expect(fake.opened).toHaveLength(2);
    await pass(60_000);
    expect(sent()).toContain('resources/subscribe');
    expect(heard()).toEqual([acknowledged, 'notifications/resources/updated']);
  });

  it('subscribes its resources again after a start that failed', async () => {
    let fails = false;
    const { fake, listen, sent, pass, begun } = createListening(
      { resourceSubscriptions: ['a:b'] },
      { onInitialize: (message, backend) => (fails ? queueMicrotask(() => backend.ends()) : opens(message, backend)) },
    );
    await begun();
    fails = true;
    fake.backend.ends();
    await pass(31_000);
    expect(fake.opened.length).toBeGreaterThan(1);
    fails = false;
    await pass(90_000);
    expect(listen.sink.state).toBe('open');
    expect([fake.living.length, sent().includes('resources/subscribe')]).toEqual([1, true]);
  });

  it('is told that the lists may have changed, if it has only those', async () => {
    const { ask, fake, heard, pass, passUntil, begun } = createListening({ toolsListChanged: true });
    await begun();
    await pass(120_000);
    expect(heard()).toEqual([acknowledged]);
    fake.backend.ends();
    await pass(10);
    const list = ask('tools/list');
    await passUntil(() => list.given !== undefined);
    await pass(120_000);
    expect(heard()).toEqual([acknowledged, listChanged]);
  });
});

it('[P8] [P10] a client that leaves its subscription while its own server starts leaves no process behind', async () => {
  const starting: [Record<string, unknown>, FakeBackend][] = [];
  const { fake, listen, passUntil, pass } = createListening(
    { toolsListChanged: true, resourceSubscriptions: ['a:b'] },
    { isolation: 'request', onInitialize: (message, backend) => void starting.push([message, backend]) },
  );
  await passUntil(() => starting.length === 1);
  listen.leave();
  await pass(50);
  for (const each of starting) opens(...each);
  await pass(2_000);
  expect([starting.length, fake.living]).toEqual([1, []]);
});

it('a subscription beside an unsubscription whose answer is late is kept for the next process', async () => {
  let unsubscribed: unknown;
  const { ask, fake, sent, listen, pass, passUntil, begun } = createListening(
    { resourceSubscriptions: ['a:b'] },
    {
      onBackendExit: 'restore',
      onSend: ({ id, method }, backend) => {
        if (method === 'resources/unsubscribe') unsubscribed = id;
        else if (method === 'resources/subscribe') backend.says({ jsonrpc: '2.0', id, result: {} });
      },
    },
  );
  await begun();
  listen.leave();
  await passUntil(() => unsubscribed !== undefined);
  const second = ask('subscriptions/listen', { params: { notifications: { resourceSubscriptions: ['a:b'] } } });
  await passUntil(() => second.given !== undefined);
  fake.backend.says({ jsonrpc: '2.0', id: unsubscribed, result: {} });
  await pass(10);
  fake.backend.ends();
  await passUntil(() => fake.opened.length === 2);
  await pass(500);
  expect(sent()).toContain('resources/subscribe');
});
