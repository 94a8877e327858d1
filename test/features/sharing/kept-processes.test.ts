import { describe, expect, it } from 'vitest';
import type { OpenOptions } from '../../../src/core/backend/backend.ts';
import { anonymous } from '../../../src/core/protocol/principal.ts';
import type { FakeBackend } from '../../support/fake-backend.ts';
import { waitFor } from '../../support/wait-for.ts';
import { alice, bob, call, createFixture, type FakeHolder, hosted, initialize } from './reuse-fixture.ts';

const methodsTo = (backend: FakeBackend | undefined): string[] =>
  (backend?.sent.items ?? []).map(({ method }) => method);

describe('the process of a session that ended, of a client that opens a session for each call', () => {
  it('serves the next session of the same client, which gets the first answer to initialize under its own id', async () => {
    const { fake, open, openAndLeave } = createFixture();
    const pid = await openAndLeave();
    const next = open();
    expect(await next.shake('again')).toBe(pid);
    expect([fake.opened.length, next.backend.pid, next.holder.starts]).toEqual([1, pid, 0]);
    expect(methodsTo(fake.backend)).toEqual(['initialize', 'notifications/initialized', 'ping']);
  });

  it.each<[string, Partial<OpenOptions>, string]>([
    ['another user', { principal: bob }, hosted],
    ['the same user with other credentials', { principal: { ...alice, credentials: 'x' } }, hosted],
    ['another client of the user', {}, `${hosted}@2`],
  ])('[P11] never serves %s', async (_, opening, name) => {
    const { fake, kept, open, openAndLeave } = createFixture();
    const pid = await openAndLeave();
    expect(await open(opening).shake(0, name)).not.toBe(pid);
    expect([fake.opened.length, kept.size]).toEqual([2, 1]);
  });

  it('serves another user if the operator lets all users share', async () => {
    const { open, openAndLeave } = createFixture({ reuse: () => 'all' });
    const pid = await openAndLeave();
    expect(await open({ principal: bob }).shake()).toBe(pid);
  });

  it('ends with its session if sharing is off, and after sharing was turned off', async () => {
    let reuse: 'user' | 'none' = 'user';
    const { fake, kept, open, openAndLeave } = createFixture({ reuse: () => reuse });
    const session = open();
    await session.shake();
    reuse = 'none';
    await session.backend.close({ mayBeKept: true });
    await waitFor(() => fake.living.length === 0, { what: 'the end of the process' });
    await openAndLeave();
    expect([kept.size, fake.living.length]).toEqual([0, 0]);
  });

  it.each<[string, (session: ReturnType<ReturnType<typeof createFixture>['open']>, server: FakeBackend) => void]>([
    ['a call is unanswered', ({ send }) => send(call(1))],
    ['a request of the server is unanswered', (_, server) => server.says(call('s', 'sampling/createMessage'))],
  ])('ends with its session if %s', async (_, leaveOpen) => {
    const { fake, kept, open } = createFixture();
    const session = open();
    await session.shake();
    leaveOpen(session, fake.backend);
    await session.backend.close({ mayBeKept: true });
    expect([kept.size, fake.living.length]).toEqual([0, 0]);
  });

  it('ends with its session if the session does not allow otherwise', async () => {
    const { fake, kept, open } = createFixture();
    const session = open();
    await session.shake();
    await session.backend.close();
    expect([kept.size, fake.living.length]).toEqual([0, 0]);
  });

  it.each([
    ['ends with its session if the gateway knows its users', alice, 0],
    ['serves the next session without authentication', anonymous, 1],
  ])('[P11] [S-07] with a task of 2025-11-25 %s', async (_, principal, keptCount) => {
    const { fake, kept, open } = createFixture({ reuse: () => 'all' });
    const session = open({ principal });
    await session.shake();
    session.send(call(1, 'tools/call', { name: 'x', task: {} }));
    fake.backend.says({ jsonrpc: '2.0', id: 1, result: { task: { taskId: 't', status: 'completed' } } });
    await session.received.next();
    await session.backend.close({ mayBeKept: true });
    expect([kept.size, fake.living.length]).toEqual([keptCount, keptCount]);
  });

  it('[P11] passes nothing of a session to the next: subscriptions end, and late output goes to nobody', async () => {
    const { fake, open } = createFixture();
    const first = open();
    await first.shake();
    const server = fake.backend;
    first.send(call(1, 'resources/subscribe', { uri: 'file:///a' }));
    server.says({ jsonrpc: '2.0', id: 1, result: {} });
    await first.received.next();
    await first.backend.close({ mayBeKept: true });
    server.says({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
    server.says(call('late', 'roots/list'), call('alive', 'ping'));
    expect(server.sent.items.slice(-3)).toMatchObject([
      { method: 'resources/unsubscribe', params: { uri: 'file:///a' } },
      { id: 'late', error: { code: -32601 } },
      { id: 'alive', result: {} },
    ]);
    const next = open();
    await next.shake();
    expect(next.received.items).toHaveLength(1);
  });

  it('ends after its time', async () => {
    const { fake, kept, openAndLeave } = createFixture({ lingerMs: 20 });
    await openAndLeave();
    await waitFor(() => fake.living.length === 0, { what: 'the end of the kept process' });
    expect(kept.size).toBe(0);
  });

  it('is forgotten if it ends by itself, and replaced if it does not answer a ping', async () => {
    const { fake, kept, open, openAndLeave } = createFixture();
    await openAndLeave();
    fake.backend.ends();
    expect(kept.size).toBe(0);
    const pid = await openAndLeave();
    fake.backend.answerToSend = 'full';
    expect(await open().shake()).not.toBe(pid);
    await waitFor(() => fake.living.length === 1, { what: 'the end of the process that does not read' });
  });

  it('is not kept any more at a server that does not answer pings, which is reported once', async () => {
    const reports: string[] = [];
    const { fake, open, openAndLeave } = createFixture({ onPingUnknown: () => void reports.push('unknown') });
    await openAndLeave();
    for (const _ of [1, 2]) {
      fake.backend.answerToSend = 'full';
      const next = open();
      await next.shake();
      await next.backend.close({ mayBeKept: true });
    }
    expect(reports).toHaveLength(1);
    const { opened } = fake;
    const before = opened.length;
    await open().shake();
    expect([reports.length, opened.length]).toEqual([1, before + 1]);
  });

  it('[P8] is one of at most four of a user, and of a limited number in all', async () => {
    const { fake, kept, openAndLeave } = createFixture({ maxKept: 6 });
    for (const version of ['a', 'b', 'c', 'd', 'e']) await openAndLeave({}, `${hosted}@${version}`);
    expect([kept.size, fake.living.length]).toEqual([4, 4]);
    for (const version of ['a', 'b', 'c']) await openAndLeave({ principal: bob }, `${hosted}@${version}`);
    expect([kept.size, fake.living.length]).toEqual([6, 6]);
  });

  it('ends when the server is closed', async () => {
    const { fake, kept, openAndLeave } = createFixture();
    await openAndLeave();
    await kept.close();
    expect(fake.living).toEqual([]);
  });

  it('serves no session if the kept processes were ended while it was checked', async () => {
    const { fake, kept, open, openAndLeave } = createFixture({ ignoresPings: true });
    const pid = await openAndLeave();
    const server = fake.backend;
    const pinged = server.sent.next(({ method }) => method === 'ping');
    const next = open().shake();
    const { id } = await pinged;
    kept.clear();
    server.says({ jsonrpc: '2.0', id, result: {} });
    expect(await next).not.toBe(pid);
    expect([server.isClosed, fake.living.length]).toEqual([true, 1]);
  });
});

describe('the process of a session that its client has left', () => {
  it('goes to the next session of the client, and back to the session that left it', async () => {
    const { fake, open } = createFixture();
    const [first, second] = [open(), open()];
    const pid = await first.shake();
    first.holder.isLeft = true;
    expect(await second.shake()).toBe(pid);
    expect([first.holder.released, second.holder.released, fake.opened.length]).toEqual([1, 0, 1]);
    second.holder.isLeft = true;
    const woken = open({ holder: first.holder });
    first.holder.backend = woken.backend;
    expect(await woken.shake()).toBe(pid);
    expect(second.holder.released).toBe(1);
  });

  it('[P11] stays with a session that is in use, and with the session of another user', async () => {
    const { open } = createFixture({ capabilities: { roots: {} } });
    const [first, second] = [open(), open()];
    const pid = await first.shake();
    expect(await second.shake()).not.toBe(pid);
    first.holder.isLeft = true;
    expect(await open({ principal: bob }).shake()).not.toBe(pid);
    expect(first.holder.released).toBe(0);
  });

  it('[P8] leaves at most 16 sessions without a process: older ones end', async () => {
    const { fake, open } = createFixture();
    const holders: FakeHolder[] = [];
    for (let count = 0; count < 20; count += 1) {
      const session = open();
      await session.shake();
      session.holder.isLeft = true;
      holders.push(session.holder);
    }
    expect(holders.map(({ expired }) => expired)).toEqual([...Array(3).fill(1), ...Array(17).fill(0)]);
    expect(fake.opened).toHaveLength(1);
  });
});

describe('a session that is refused or ends early', () => {
  it('keeps no process', async () => {
    const { fake, kept, open } = createFixture();
    const session = open();
    session.send(initialize(0));
    await session.backend.close({ mayBeKept: true });
    expect([kept.size, fake.living.length]).toEqual([0, 0]);
  });

  it('returns the process that it was about to take', async () => {
    const { kept, open, openAndLeave } = createFixture();
    await openAndLeave();
    const session = open();
    session.send(initialize(0));
    await session.backend.close({ mayBeKept: true });
    expect(await session.ends.next()).toBe('closed');
    await waitFor(() => kept.size === 1, { what: 'the return of the process' });
    expect(session.received.items).toEqual([]);
  });
});

describe('a client of which nothing is known', () => {
  /** Sessions of a client, each of which makes some calls and ends. */
  const visit = async (
    { open }: Pick<ReturnType<typeof createFixture>, 'open'>,
    { answered = 1, ends = true }: { answered?: number; ends?: boolean } = {},
  ): Promise<number> => {
    const session = open();
    const pid = await session.shake(0, 'c');
    session.holder.answered = answered;
    if (ends) await session.backend.close({ mayBeKept: true });
    else session.holder.isLeft = true;
    return pid;
  };

  it.each([true, false])(
    'has a fresh process, and from its third session on that of the last, if it ends them: %s',
    async (ends) => {
      const fixture = createFixture();
      const pids = [];
      for (let count = 0; count < 5; count += 1) pids.push(await visit(fixture, { ends }));
      const [first, second] = pids;
      expect(pids).toEqual([first, second, second, second, second]);
      expect(first).not.toBe(second);
      expect(fixture.fake.living).toHaveLength(1);
    },
  );

  it('has fresh processes again after a session with more calls', async () => {
    const fixture = createFixture();
    const pids: number[] = [];
    for (const answered of [1, 1, 1, 3, 1, 1]) pids.push(await visit(fixture, { answered }));
    const [first, second, , , fifth, sixth] = pids;
    expect(pids).toEqual([first, second, second, second, fifth, sixth]);
    expect(new Set(pids).size).toBe(4);
    expect(fixture.kept.size).toBeLessThanOrEqual(1);
  });

  it('opens sessions at once without a wait: none has the process of another', async () => {
    const { fake, open } = createFixture({ isSilent: true });
    const sessions = Array.from({ length: 30 }, () => open());
    for (const { send } of sessions) send(initialize(0, 'c'));
    expect(fake.opened).toHaveLength(30);
  });

  it('[P11] has a fresh process if the gateway does not know its users', async () => {
    const fixture = createFixture({ reuse: () => 'none' });
    const pids = [await visit(fixture), await visit(fixture), await visit(fixture), await visit(fixture)];
    expect(new Set(pids).size).toBe(4);
    expect(fixture.fake.living).toEqual([]);
  });
});
