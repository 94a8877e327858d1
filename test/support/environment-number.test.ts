import { afterEach, expect, it, vi } from 'vitest';
import { environmentNumber } from './environment-number.ts';

afterEach(() => void vi.unstubAllEnvs());

it('takes numbers from the environment, and refuses what is none', () => {
  expect(environmentNumber('SOME_RUNS', 20)).toBe(20);
  vi.stubEnv('SOME_RUNS', '1000');
  expect(environmentNumber('SOME_RUNS', 20)).toBe(1_000);
  for (const text of ['abc', '', '0', '-1', '1.5', 'Infinity']) {
    vi.stubEnv('SOME_RUNS', text);
    expect(() => environmentNumber('SOME_RUNS', 20)).toThrow(
      `SOME_RUNS is a whole number from 1 up, and not "${text}"`,
    );
  }
  vi.stubEnv('SOME_RUNS', '1.5');
  expect(environmentNumber('SOME_RUNS', 20, { isFraction: true })).toBe(1.5);
});
