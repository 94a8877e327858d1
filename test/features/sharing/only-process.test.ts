import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createFakeServer, type FakeBackend } from '../../support/fake-backend.ts';
import {
  alice,
  bob,
  call,
  createFixture,
  type FixtureOptions,
  initialize,
  initialized,
  result,
} from './reuse-fixture.ts';

/** What another process of a server does of which only one can run, on its first message. */
type Another = 'ends' | 'refuses' | 'is silent' | 'ends the first';

function createOnlyProcess(how: Another = 'ends', options: FixtureOptions = {}) {
  const onOnlyProcess = vi.fn();
  const living = new Set<FakeBackend>();
  const fake = createFakeServer(({ id, method, params }, backend) => {
    if (method === 'ping') return backend.says(result(id));
    if (method !== 'initialize') return;
    const others = [...living].filter((other) => other !== backend && fake.living.includes(other));
    const { protocolVersion } = params as { protocolVersion: string };
    if (others.length === 0 || how === 'ends the first') {
      for (const other of others) other.ends({ reason: 'exited', detail: 'taken over' });
      living.add(backend);
      return backend.says(result(id, { protocolVersion, capabilities: {}, pid: backend.pid }));
    }
    if (how === 'ends') backend.ends({ reason: 'exited', detail: 'in use' });
    else if (how === 'refuses') backend.says({ jsonrpc: '2.0', id, error: { code: -32603, message: 'locked' } });
  });
  return { ...createFixture({ open: fake.open, onOnlyProcess, ...options }), fake, onOnlyProcess };
}

const client = 'some-client';

describe('a server of which only one process can run', () => {
  it.each(['ends', 'refuses'] as const)(
    '[P2] shares it with the next sessions of the user: a second one %s',
    async (how) => {
      const { fake, open, onOnlyProcess } = createOnlyProcess(how);
      const [first, second, third] = [open(), open(), open({ isGroup: true, holder: undefined })];
      const pid = await first.shake(0, client);
      expect(await second.shake('s', client)).toBe(pid);
      expect(await third.shake('t', 'mcp-gangway')).toBe(pid);
      expect([fake.living.length, onOnlyProcess.mock.calls.length]).toEqual([1, 1]);
      third.send(call(1));
      const [server] = fake.living;
      const forwarded = server?.sent.items.at(-1);
      server?.says(result(forwarded.id, { of: 'third' }));
      expect(await third.received.next()).toMatchObject({ id: 1, result: { of: 'third' } });
      expect(first.received.items).toHaveLength(1);
    },
  );

  it('[P2] shares it with a session whose process is silent while the first one works', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { fake, open, onOnlyProcess } = createOnlyProcess('is silent');
    const [first, second, third] = [open(), open(), open()];
    const pid = await first.shake(0, client);
    const opened = second.shake('s', client);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(fake.living).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(200);
    expect(await opened).toBe(pid);
    expect(await third.shake('t', client)).toBe(pid);
    expect([fake.living.length, onOnlyProcess.mock.calls.length]).toEqual([1, 1]);
  });

  it('waits for a silent process as long as the first one does not answer either', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { fake, open } = createFixture({ isSilent: true });
    for (const session of [open(), open()]) session.send(initialize(0, client));
    await vi.advanceTimersByTimeAsync(50_000);
    expect(fake.living).toHaveLength(2);
  });

  it('[P2] shares it after another process has ended the first one twice, and remembers that', async () => {
    const { fake, open, onOnlyProcess } = createOnlyProcess('ends the first');
    const [first, second, third] = [open(), open(), open()];
    await first.shake(0, client);
    await second.shake(0, client);
    expect(await first.ends.next()).toBe('exited');
    expect(onOnlyProcess).not.toHaveBeenCalled(); // perhaps it crashed
    const pid = await third.shake(0, client); // the first session again
    expect(await second.ends.next()).toBe('exited');
    const fourth = open();
    expect(await fourth.shake(0, client)).toBe(pid);
    expect([fake.living.length, onOnlyProcess.mock.calls.length]).toEqual([1, 1]);
    await Promise.all([third.backend.close(), fourth.backend.close()]);
    const later = [open(), open()];
    const [one, other] = [await later[0]?.shake(0, client), await later[1]?.shake(0, client)];
    expect([one === other, one !== pid]).toEqual([true, true]);
  });

  it('[P11] whose start ends the process of another user does not start then', async () => {
    const { fake, open } = createOnlyProcess('ends the first');
    for (let count = 0; count < 3; count += 1) await open({ principal: alice }).shake(0, client);
    const second = open({ principal: bob });
    second.send(initialize(0, client));
    expect(await second.ends.next()).toBe('exited');
    expect(fake.living).toHaveLength(1);
  });

  it('is not one whose processes crash now and then, and run beside each other', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const onOnlyProcess = vi.fn();
    const { fake, open } = createFixture({ onOnlyProcess });
    for (let count = 0; count < 4; count += 1) {
      await open().shake(0, client);
      await open().shake(0, client);
      fake.living[0]?.ends({ reason: 'exited', detail: 'crashed' });
      await open().shake(0, client);
      await vi.advanceTimersByTimeAsync(3_000);
    }
    expect(onOnlyProcess).not.toHaveBeenCalled();
  });

  it('tells a session the revision that it asked for', async () => {
    const { open } = createOnlyProcess();
    const [first, second] = [open(), open()];
    await first.shake(0, client);
    const asked = initialize(1, client);
    second.send({ ...asked, params: { ...asked.params, protocolVersion: '2025-03-26' } });
    expect((await second.received.next()).result.protocolVersion).toBe('2025-03-26');
  });

  it('[P11] is not shared with another user, whose session ends as its process does', async () => {
    const { fake, open, onOnlyProcess } = createOnlyProcess();
    const [first, second] = [open({ principal: alice }), open({ principal: bob })];
    await first.shake(0, client);
    second.send(initialize(0, client));
    expect(await second.ends.next()).toBe('exited');
    expect([fake.living.length, onOnlyProcess.mock.calls.length]).toEqual([1, 0]);
  });

  it('waits for a process that is ending, whoever had it', async () => {
    const { fake, open } = createOnlyProcess();
    const [first, second] = [open({ principal: bob }), open({ principal: alice })];
    const pid = await first.shake(0, client);
    const [server] = fake.living;
    const release = server?.holdClose();
    const closed = first.backend.close();
    const opened = second.shake(0, client);
    await Promise.resolve();
    release?.();
    await closed;
    expect(await opened).not.toBe(pid);
  });

  it('starts again for the next session once the process has ended', async () => {
    const { fake, open } = createOnlyProcess();
    const [first, second] = [open(), open()];
    const pid = await first.shake(0, client);
    await second.shake(0, client);
    await Promise.all([first.backend.close(), second.backend.close()]);
    const next = open();
    expect(await next.shake(0, client)).not.toBe(pid);
    expect(fake.living).toHaveLength(1);
  });
});

it('sessions whose processes all end at their start end, after a second attempt at most', async () => {
  const fake = createFakeServer((_, backend) => queueMicrotask(() => backend.ends({ reason: 'exited', detail: 'no' })));
  const onOnlyProcess = vi.fn();
  const { open } = createFixture({ open: fake.open, onOnlyProcess });
  const sessions = [open(), open(), open()];
  for (const { send } of sessions) send(initialize(0, client));
  expect(await Promise.all(sessions.map(({ ends }) => ends.next()))).toEqual(['exited', 'exited', 'exited']);
  expect(fake.opened.length).toBeLessThanOrEqual(2 * sessions.length);
  expect(onOnlyProcess).not.toHaveBeenCalled();
});

it('a refusal without another process reaches the client', async () => {
  const fake = createFakeServer(({ id, method }, backend) => {
    if (method === 'initialize') backend.says({ jsonrpc: '2.0', id, error: { code: -32602, message: 'no' } });
  });
  const { open } = createFixture({ open: fake.open });
  const session = open();
  session.send(initialize(7, client));
  expect((await session.received.next()).error.message).toBe('no');
  session.send(initialized);
  expect(fake.opened).toHaveLength(1);
});
