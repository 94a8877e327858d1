import { expect, it } from 'vitest';
import { pauseBeforeReconnect } from '../../../src/core/backend/reconnect-pause.ts';

it('[J-03] a pause is no longer than the time that is left for all attempts', async () => {
  const { signal } = new AbortController();
  const startedAt = performance.now();
  expect(await pauseBeforeReconnect(20, { signal, leftMs: 20 })).toBe(true);
  expect(performance.now() - startedAt).toBeLessThan(4_000); // without a limit it takes five seconds or more
});
