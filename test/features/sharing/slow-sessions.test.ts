import { afterEach, describe, expect, it, vi } from 'vitest';
import { notification, openTwo } from './reuse-fixture.ts';

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
