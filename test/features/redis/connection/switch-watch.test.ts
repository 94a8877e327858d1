import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import { watchSwitches } from '../../../../src/features/redis/connection/switch-watch.ts';

function createFixture() {
  const client = Object.assign(new EventEmitter(), { status: 'ready', disconnect: vi.fn() });
  const sentinels = [0, 1].map(() =>
    Object.assign(new EventEmitter(), { subscribe: vi.fn(async () => 1), disconnect: vi.fn() }),
  );
  const end = watchSwitches(client as unknown as Redis, 'main', sentinels as unknown as Redis[]);
  const tell = (name = 'main', sentinel = 0) =>
    sentinels[sentinel]?.emit('message', '+switch-master', `${name} 127.0.0.1 1 127.0.0.1 2`);
  const become = (status: string): void => {
    client.status = status;
    client.emit(status);
  };
  return { client, sentinels, end, tell, become };
}

it('leaves the former master at the word of any sentinel, and connects again', () => {
  const { client, sentinels, tell } = createFixture();
  expect(sentinels.map(({ subscribe }) => subscribe.mock.calls)).toEqual([[['+switch-master']], [['+switch-master']]]);
  tell('another');
  expect(client.disconnect).not.toHaveBeenCalled();
  tell('main', 1);
  expect(client.disconnect.mock.calls).toEqual([[true]]);
});

it('[P7] does not disturb a client that connects, which ioredis would then end for good, and asks again once it has connected', () => {
  const { client, tell, become } = createFixture();
  become('connecting');
  tell();
  expect(client.disconnect).not.toHaveBeenCalled();
  become('ready');
  expect(client.disconnect.mock.calls).toEqual([[true]]);
  // What it connects to next, it has asked for after the news.
  become('connecting');
  become('ready');
  expect(client.disconnect).toHaveBeenCalledTimes(1);
});

it('bears sentinels that are away, and ends with the store', () => {
  const { sentinels, end } = createFixture();
  sentinels[0]?.emit('error', new Error('away'));
  end();
  expect(sentinels.map(({ disconnect }) => disconnect.mock.calls.length)).toEqual([1, 1]);
});
