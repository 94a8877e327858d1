import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ChangeListener } from '../src/host.ts';
import { SharedTopic } from '../src/snapshot/shared-topic.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Announcements that fail as often as told, as those of a store that is away when the gateway starts. */
function createTopic(failures: number) {
  const listeners: ChangeListener[] = [];
  const failed: unknown[] = [];
  const heard: string[] = [];
  let attempts = 0;
  const changes = {
    publish: () => Promise.resolve(),
    subscribe(_: string, listener: ChangeListener) {
      attempts += 1;
      if (attempts <= failures) return Promise.reject(new Error('away'));
      listeners.push(listener);
      return Promise.resolve(() => void listeners.pop());
    },
  };
  const topic = new SharedTopic({
    ...{ changes, topic: 'status', onFailed: (cause) => void failed.push(cause) },
    onMessage: (text) => void heard.push(text.toString()),
  });
  return { topic, failed, heard, listeners, attempts: () => attempts };
}

test('an instance that could not subscribe at its start hears questions as soon as it can, also without a page', async () => {
  const { topic, failed, heard, listeners } = createTopic(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(failed).toHaveLength(2);
  for (const { onChange } of listeners) onChange(Buffer.from('?'));
  expect(heard).toEqual(['?']);
  await topic.close();
  expect(listeners).toEqual([]);
});

test('a closed topic does not subscribe again', async () => {
  const { topic, attempts } = createTopic(9);
  await vi.advanceTimersByTimeAsync(0);
  await topic.close();
  const before = attempts();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(attempts()).toBe(before);
});
