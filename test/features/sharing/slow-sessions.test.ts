import { afterEach, describe, expect, it, vi } from 'vitest';
import { call, notification, openTwo, progress, withToken } from './reuse-fixture.ts';

/** Longer than a session may hold up the process that it shares. */
const tooLongMs = 6_000;

/** Two sessions of one user in one process. The second has left more unread than a session may. */
async function openWithSlow() {
  const fixture = await openTwo();
  vi.useFakeTimers();
  fixture.second.backend.pause();
  const pad = 'x'.repeat(1024 * 1024);
  for (let count = 0; count < 5; count += 1)
    fixture.server.says(notification('notifications/tools/list_changed', { pad }));
  expect(fixture.server.isPaused).toBe(true);
  return fixture;
}

afterEach(() => {
  vi.useRealTimers();
});

describe('a session that does not read, in a process that it shares', () => {
  it('[P8] [P10] stays in the process if it is alone by now, and ends the process when it ends', async () => {
    const { fake, first, second, server } = await openWithSlow();
    void first.backend.close({ mayBeKept: true });
    vi.advanceTimersByTime(tooLongMs);
    expect([second.ends.items, server.isPaused]).toEqual([[], true]);
    second.backend.resume();
    expect([second.received.items.length, server.isPaused]).toEqual([6, false]);
    await second.backend.close({ isForGood: true });
    expect(fake.living).toEqual([]);
  });

  it('[P8] [P11] does not end the process of the other when it was detached and ends', async () => {
    const { first, second, server } = await openWithSlow();
    vi.advanceTimersByTime(tooLongMs);
    await second.backend.close({ isForGood: true });
    expect([server.isClosed, server.isPaused]).toEqual([false, false]);
    expect([first.ends.items, second.ends.items]).toEqual([[], ['exited']]);
    await first.backend.close({ isForGood: true });
    expect(server.isClosed).toBe(true);
  });

  it('learns that a request has no answer after all messages about the request', async () => {
    const { second, server, newest } = await openTwo();
    second.send(call(5, 'tools/call', withToken('t')));
    const { id } = newest();
    second.backend.pause();
    server.says(progress(id, 1), progress(id, 2));
    server.leaves([id], 'server_unreachable');
    expect([second.received.items.length, second.unanswered.items]).toEqual([1, []]);
    second.backend.resume();
    expect(second.received.items.slice(1).map(({ params }) => params)).toEqual([
      { progressToken: 't', progress: 1 },
      { progressToken: 't', progress: 2 },
    ]);
    expect(second.unanswered.items).toEqual([[3, 5]]);
  });

  it('[P8] is detached if another session has joined it meanwhile', async () => {
    const { first, second, server, open } = await openWithSlow();
    void first.backend.close({ mayBeKept: true });
    vi.advanceTimersByTime(tooLongMs);
    const third = open();
    expect(await third.shake()).toBe(server.pid);
    expect(server.isPaused).toBe(false);
    server.says(notification('notifications/tools/list_changed'));
    expect(server.isPaused).toBe(true);
    vi.advanceTimersByTime(tooLongMs);
    expect([second.ends.items, third.ends.items, server.isPaused]).toEqual([['exited'], [], false]);
  });
});
