import { describe, expect, it, vi } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import {
  bob,
  call,
  createFixture,
  initialize,
  initialized,
  notification,
  openTwo,
  progress,
  result,
  withToken,
} from './reuse-fixture.ts';

describe('two sessions that use a process at the same time', () => {
  it('[P2] get the answers and the progress of their own calls, with the same ids and tokens', async () => {
    const { fake, first, second, server, newest } = await openTwo();
    first.send(call(7, 'tools/call', withToken(7)));
    second.send(call(7, 'tools/call', withToken(7)));
    const { id, params } = newest();
    expect([typeof id, params._meta.progressToken]).toEqual(['number', id]);
    server.says(
      progress(id),
      progress(7, 2),
      result(id, { of: 'second' }),
      progress(id, 3),
      result(7, { of: 'first' }),
    );
    expect(first.received.items.slice(1)).toEqual([progress(7, 2), result(7, { of: 'first' })]);
    expect(second.received.items.slice(1)).toEqual([progress(7), result(7, { of: 'second' }), progress(7, 3)]);
    expect(fake.opened).toHaveLength(1);
  });

  it('[G-12] [S-20] [P11] cannot use the numbers of the gateway: a hostile session gets no message of another', async () => {
    const { first, second, server, newest } = await openTwo();
    second.send(call('a', 'tools/call', withToken('a')));
    const { id } = newest();
    for (const guess of [id, id + 1]) first.send(call(guess, 'tools/call', withToken(guess)));
    server.says(progress(id), result(id, { of: 'second' }));
    expect(first.received.items.slice(1)).toEqual([]);
    expect(second.received.items.slice(1)).toEqual([progress('a'), result('a', { of: 'second' })]);
    first.send(notification('notifications/cancelled', { requestId: id }));
    expect(newest()).not.toMatchObject({ params: { requestId: id } });
    first.send(result('s', { from: 'first' }));
    expect(newest()).not.toMatchObject({ id: 's' });
    const sent = server.sent.items.length;
    second.send(call('open', 'tools/call', withToken('open')));
    const open = newest().id;
    for (const guess of [open, String(open), 'unknown', 'open', null, 1.5, [open]]) {
      first.send(notification('notifications/cancelled', { requestId: guess }));
      first.send(progress(guess));
    }
    expect(server.sent.items.slice(sent).map(({ method }) => method)).toEqual(['tools/call']);
    first.send(call(String(open + 1), 'tools/call', withToken('own')));
    expect(typeof newest().id).toBe('number');
  });

  it('[G-12] [P11] report progress only of what they were asked themselves', async () => {
    const { first, second, server, newest } = await openTwo({ capabilities: { sampling: {} } });
    second.send(call(1));
    server.says(call('s', 'sampling/createMessage', withToken('t')));
    await second.received.next(({ id }) => id === 's');
    first.send(progress('t'));
    expect(newest()).toMatchObject({ method: 'tools/call' });
    second.send(progress('t'));
    expect(newest()).toEqual(progress('t'));
    second.send(result('s'));
    second.send(progress('t', 2));
    expect(newest()).toEqual(result('s'));
  });

  it('[P11] answer no request of the server that has the id of one for the other session', async () => {
    const { first, second, server, newest } = await openTwo({ capabilities: { sampling: {} } });
    second.send(call(1));
    server.says(call('s', 'sampling/createMessage'));
    server.says(result(newest().id));
    first.send(call(1));
    server.says(call('s', 'sampling/createMessage'));
    expect(first.received.items.filter(({ id }) => id === 's')).toEqual([]);
    second.send(result('s', { from: 'second' }));
    expect(newest()).toEqual(result('s', { from: 'second' }));
  });

  it('[G-10] [P8] have at most 500 subscriptions each, and none with a long URI', async () => {
    const { first, second, newest, methods } = await openTwo();
    const reasonOf = async (id: number, uri: string): Promise<unknown> => {
      first.send(call(id, 'resources/subscribe', { uri }));
      return (await first.received.next((message) => message.id === id)).error?.data.reason;
    };
    for (let id = 1; id <= 500; id += 1) first.send(call(id, 'resources/subscribe', { uri: `file:///${id}` }));
    expect(await reasonOf(501, 'file:///501')).toBe('too_many_subscriptions');
    expect(await reasonOf(502, `file:///${'x'.repeat(2_048)}`)).toBe('uri_too_long');
    expect(methods().filter((method) => method === 'resources/subscribe')).toHaveLength(500);
    second.send(call(1, 'resources/subscribe', { uri: 'file:///501' }));
    expect(newest()).toMatchObject({ params: { uri: 'file:///501' } });
  });

  it('[P8] hold at most 16 MiB of calls that wait for those of another session', async () => {
    const { first, second } = await openTwo({ capabilities: { sampling: {} } });
    first.send(call(0));
    const text = 'x'.repeat(3 * 1024 * 1024);
    const sent = [1, 2, 3, 4, 5, 6].map((id) => second.send(call(id, 'tools/call', { text })));
    expect(sent).toEqual(['sent', 'sent', 'sent', 'sent', 'sent', 'full']);
    second.send(notification('notifications/cancelled', { requestId: 1 }));
    expect(second.send(call(7, 'tools/call', { text }))).toBe('sent');
  });

  it('get a message without a request if only they have a call, and nobody does if both have', async () => {
    const onDropped = vi.fn();
    const { first, second, server } = await openTwo({ onDropped });
    const log = (data: string) => notification('notifications/message', { level: 'info', data });
    second.send(call(1));
    server.says(log('of the second'));
    first.send(call(1));
    server.says(log('of nobody'));
    server.says(result(1), log('of the second again'));
    expect(first.received.items.slice(1)).toEqual([result(1)]);
    expect(second.received.items.slice(1)).toEqual([log('of the second'), log('of the second again')]);
    expect(onDropped).toHaveBeenCalledTimes(1);
  });

  it('[G-15] [P11] [S-20] of two users get no message without a request: it may be a late one for the other user', async () => {
    const onDropped = vi.fn();
    const { first, second, server, newest } = await openTwo({ onDropped, reuse: () => 'all' }, bob);
    const late = notification('notifications/message', { level: 'info', data: 'of the first' });
    first.send(call(1));
    server.says(result(1), late);
    second.send(call(2));
    server.says(late, notification('notifications/acme/hello', { of: 'the first' }));
    expect(second.received.items.slice(1)).toEqual([]);
    expect(onDropped).toHaveBeenCalledTimes(3);
    server.says(result(newest().id));
    expect(second.received.items.slice(1)).toEqual([result(2)]);
  });

  it('[P11] [S-20] learn of the end of their own elicitations only, also of those that an error names', async () => {
    const { first, second, server, newest } = await openTwo({ reuse: () => 'all' }, bob);
    const complete = (elicitationId: string) => notification('notifications/elicitation/complete', { elicitationId });
    first.send(call(1));
    server.says(call('q', 'elicitation/create', { mode: 'url', elicitationId: 'a' }), result(1));
    second.send(call(2));
    const error = {
      code: -32042,
      message: 'm',
      data: { elicitations: [{ elicitationId: 'b' }, { elicitationId: 'a' }] },
    };
    server.says({ jsonrpc: '2.0', id: newest().id, error });
    server.says(complete('a'), complete('b'), complete('c'));
    expect(first.received.items.at(-1)).toEqual(complete('a'));
    expect(second.received.items.at(-1)).toEqual(complete('b'));
    await first.backend.close({ mayBeKept: true });
    server.says(complete('a'));
    expect(second.received.items.at(-1)).toEqual(complete('b'));
  });

  it('both learn of changed lists, and the gateway answers the pings of the server', async () => {
    const { first, second, server, newest } = await openTwo();
    const changed = notification('notifications/tools/list_changed');
    server.says(changed, call('p', 'ping'));
    expect([first, second].map(({ received }) => received.items.at(-1))).toEqual([changed, changed]);
    expect(newest()).toEqual(result('p'));
  });

  it('have their own subscriptions: the last one ends it at the server', async () => {
    const { first, second, server, newest, methods } = await openTwo();
    const updated = notification('notifications/resources/updated', { uri: 'file:///a' });
    const answered = async (session: typeof first, request: ReturnType<typeof call>) => {
      session.send(request);
      server.says(result(newest().id));
      await session.received.next(({ id }) => id === request.id);
    };
    await answered(first, call(1, 'resources/subscribe', { uri: 'file:///a' }));
    server.says(updated);
    await answered(second, call(1, 'resources/subscribe', { uri: 'file:///a' }));
    server.says(updated);
    first.send(call(2, 'resources/unsubscribe', { uri: 'file:///a' }));
    expect(await first.received.next(({ id }) => id === 2)).toEqual(result(2));
    server.says(updated);
    const updates = [first, second].map(({ received }) => received.items.filter(({ method }) => method !== undefined));
    expect(updates).toEqual([
      [updated, updated],
      [updated, updated],
    ]);
    expect(methods()).not.toContain('resources/unsubscribe');
    await second.backend.close();
    expect(newest()).toMatchObject({ method: 'resources/unsubscribe', params: { uri: 'file:///a' } });
  });

  it('have their own log levels: the server has the most verbose one', async () => {
    const { first, second, server, newest, methods } = await openTwo();
    const setLevel = (level: string) => call(level, 'logging/setLevel', { level });
    const log = (level: string) => notification('notifications/message', { level, data: level });
    first.send(setLevel('error'));
    server.says(result('error'));
    second.send(setLevel('debug'));
    server.says(result(newest().id));
    first.send(setLevel('warning'));
    expect(await first.received.next(({ id }) => id === 'warning')).toEqual(result('warning'));
    expect(methods().filter((method) => method === 'logging/setLevel')).toHaveLength(2);
    first.send(call(1));
    server.says(log('info'), log('warning'));
    expect(first.received.items.filter(({ method }) => method !== undefined)).toEqual([log('warning')]);
    await second.backend.close();
    expect(newest()).toMatchObject({ method: 'logging/setLevel', params: { level: 'warning' } });
  });

  it('[P2] keep their log level if another session lowers its own', async () => {
    const { first, second, server } = await openTwo();
    const setLevel = (level: string) => call(level, 'logging/setLevel', { level });
    const levels = () => server.sent.items.filter(({ method }) => method === 'logging/setLevel');
    first.send(setLevel('debug'));
    server.says(result('debug'));
    second.send(setLevel('info'));
    first.send(setLevel('error'));
    expect(await first.received.next(({ id }) => id === 'error')).toEqual(result('error'));
    expect(levels().map(({ params }) => params.level)).toEqual(['debug', 'info']);
    server.says(result(levels().at(-1).id));
    expect([first, second].map(({ received }) => received.items.length)).toEqual([3, 2]);
  });

  it('cancel their own call, and a session that leaves cancels its calls', async () => {
    const { fake, kept, first, second, server, newest } = await openTwo();
    second.send(call(1));
    const { id } = newest();
    second.send(notification('notifications/cancelled', { requestId: 1, reason: 'enough' }));
    expect(newest()).toEqual(notification('notifications/cancelled', { requestId: id, reason: 'enough' }));
    second.send(call(2));
    const open = newest().id;
    await second.backend.close({ mayBeKept: true });
    expect(newest()).toMatchObject({ method: 'notifications/cancelled', params: { requestId: open } });
    first.send(call(1));
    server.says(result(open), result(1));
    expect(first.received.items.at(-1)).toEqual(result(1));
    expect([fake.living.length, kept.size]).toEqual([1, 0]);
  });

  it('both lose the process, and one start serves both again', async () => {
    const { fake, first, second, server, open } = await openTwo();
    server.ends();
    expect(await Promise.all([first.ends.next(), second.ends.next()])).toEqual(['exited', 'exited']);
    const again = [open(), open(), open()];
    const pids = await Promise.all(again.map((session) => session.shake()));
    expect([new Set(pids).size, fake.opened.length]).toEqual([1, 2]);
  });

  it('[P8] do not wait for one that does not read, until it leaves too much unread', async () => {
    const { first, second, server, newest } = await openTwo();
    second.send(call(1, 'tools/call', withToken(1)));
    const { id } = newest();
    second.backend.pause();
    first.send(call(2));
    server.says(progress(id), result(2));
    expect(first.received.items.at(-1)).toEqual(result(2));
    expect([server.isPaused, second.received.items.length]).toEqual([false, 1]);
    const large = { ...progress(id), params: { progressToken: id, progress: 2, message: 'x'.repeat(5 * 1024 * 1024) } };
    server.says(large);
    expect(server.isPaused).toBe(true);
    second.backend.resume();
    expect([server.isPaused, second.received.items.length]).toEqual([false, 3]);
  });
});

describe('clients that the server may ask', () => {
  const capabilities = { elicitation: {} };

  it('[P2] make calls one after another: a question reaches the session with the call', async () => {
    const { first, second, server, newest, methods } = await openTwo({ capabilities });
    first.send(call(1));
    second.send(call(1));
    second.send(call(2, 'tools/list'));
    expect(methods().slice(-2)).toEqual(['tools/call', 'tools/list']);
    server.says(result(newest().id), call('q', 'elicitation/create'));
    expect(first.received.items.at(-1)).toMatchObject({ id: 'q' });
    second.send(result('q', { forged: true }));
    expect(newest()).toMatchObject({ method: 'tools/list' });
    first.send(result('q', { by: 'first' }));
    expect(newest()).toEqual(result('q', { by: 'first' }));
    server.says(result(1));
    await waitFor(() => newest().method === 'tools/call', { what: 'the call of the second session' });
    server.says(call('r', 'elicitation/create'));
    expect(second.received.items.at(-1)).toMatchObject({ id: 'r' });
  });

  it('[P2] ask for the results of tasks one after another, too: a server asks its client while it waits for one', async () => {
    const { first, second, server, newest, methods } = await openTwo({ capabilities });
    first.send(call(1, 'tasks/result', { taskId: 't' }));
    second.send(call(1));
    expect(methods().at(-1)).toBe('tasks/result');
    server.says(call('q', 'elicitation/create'));
    expect(first.received.items.at(-1)).toMatchObject({ id: 'q' });
    server.says(result(1));
    await waitFor(() => newest().method === 'tools/call', { what: 'the call of the second session' });
  });

  it('get the process with the fewest open calls, and another one while each has some, if poolMax allows it', async () => {
    const { fake, first, server, open } = await openTwo({ capabilities, poolMax: 2 });
    first.send(call(1));
    const third = open();
    expect(await third.shake()).not.toBe(server.pid);
    expect(await open().shake()).toBe(third.backend.pid);
    third.send(call(2));
    third.send(call(3));
    expect(await open().shake()).toBe(server.pid);
    expect(fake.opened).toHaveLength(2);
  });
});

describe('which sessions use a process at the same time', () => {
  it('by default: those of a client that opens a session for each call, unless it accepts questions', async () => {
    for (const [capabilities, processes] of [
      [{}, 1],
      [{ roots: {} }, 3],
    ] as const) {
      const { fake, open } = createFixture({ capabilities });
      const first = open();
      await first.shake();
      first.send(call(1));
      await open().shake();
      await open().shake();
      expect(fake.opened).toHaveLength(processes);
    }
  });

  it('[P11] never those of two users, whatever their clients say', async () => {
    const { open } = createFixture({ sharedBy: 'all' });
    const names = ['c', 'alice', '","bob', '__proto__', '\0'];
    const [ofAlice, ofBob] = await Promise.all(
      [{}, { principal: bob }].map((opening) => Promise.all(names.map((name) => open(opening).shake(0, name)))),
    );
    expect(new Set(ofAlice).size).toBe(1);
    expect(new Set(ofBob).size).toBe(1);
    expect(ofAlice?.[0]).not.toBe(ofBob?.[0]);
  });

  it('none at a server with tasks, whose messages name no session', async () => {
    const { fake, open } = createFixture({ sharedBy: 'all', serverCapabilities: { tasks: {} } });
    await open().shake();
    await open().shake();
    expect(fake.opened).toHaveLength(2);
  });

  it('none with a client that never confirms the answer to initialize', async () => {
    const { fake, open } = createFixture({ sharedBy: 'all' });
    const first = open();
    first.send(initialize(0));
    await first.received.next();
    await open().shake();
    expect(fake.opened).toHaveLength(2);
  });

  it('[P8] at most 16 that do nothing: the ones that were quiet for longest end', async () => {
    const { fake, open } = createFixture({ sharedBy: 'all' });
    const sessions = [];
    for (let count = 0; count < 60; count += 1) {
      const session = open();
      await session.shake();
      session.holder.isLeft = true;
      session.holder.quietMs = 1_000 - count;
      session.holder.expire = () => {
        session.holder.expired += 1;
        void session.backend.close();
      };
      sessions.push(session);
    }
    const living = sessions.filter(({ holder }) => holder.expired === 0);
    expect(living.length).toBeLessThanOrEqual(32);
    expect(living.length).toBeGreaterThanOrEqual(16);
    expect(living).toEqual(sessions.slice(-living.length));
    expect(fake.opened).toHaveLength(1);
  });
});

describe('a session whose process is not found yet', () => {
  it('[P8] holds at most 16 MiB of messages', () => {
    const { open } = createFixture({ sharedBy: 'all', isSilent: true });
    const [first, second] = [open(), open()];
    first.send(initialize(0));
    second.send(initialize(0));
    const text = 'x'.repeat(3 * 1024 * 1024);
    const sent = [1, 2, 3, 4, 5, 6].map((id) => second.send(call(id, 'tools/call', { text })));
    expect(sent).toEqual(['sent', 'sent', 'sent', 'sent', 'sent', 'full']);
  });
});

describe('a start that fails', () => {
  it('makes one of the waiting sessions start the next process, and the others wait for that', async () => {
    const { fake, open } = createFixture({ sharedBy: 'all', isSilent: true });
    const sessions = [open(), open(), open()];
    for (const { send } of sessions) send(initialize(0));
    fake.backend.ends({ reason: 'failed' });
    await waitFor(() => fake.opened.length === 2, { what: 'the second start' });
    fake.backend.says(result(0, { pid: fake.backend.pid, capabilities: {} }));
    const [, second, third] = sessions;
    await second?.received.next();
    second?.send(initialized);
    await third?.received.next();
    expect(fake.opened).toHaveLength(2);
  });
});
