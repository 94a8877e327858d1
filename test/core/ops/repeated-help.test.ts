import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RepeatedHelp } from '../../../src/core/ops/repeated-help.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('writes the help for a server once a minute, and counts between', () => {
  const helps = new RepeatedHelp();
  const lines = (count: number) => Array.from({ length: count }, () => helps.of('a', 'Look.'));
  expect(lines(3)).toEqual([{ help: 'Look.' }, { repeated: 1 }, { repeated: 2 }]);
  expect([helps.of('b', 'Look.'), helps.of('a', 'Other.'), helps.of('a', undefined)]).toEqual([
    { help: 'Look.' },
    { help: 'Other.' },
    {},
  ]);
  vi.advanceTimersByTime(60_000);
  expect(lines(2)).toEqual([{ help: 'Look.' }, { repeated: 1 }]);
});
