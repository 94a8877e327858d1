import { expect, it } from 'vitest';
import { options } from '../../../src/config/options/option-names.ts';

/**
 * Each option costs lines in five pages, and combinations that nobody tests (docs/decisions/0192): a hundred, and those of
 * long calls (docs/decisions/0221) and of what operators watch (docs/decisions/0212, 0216), and policies (0220).
 */
it('there are at most 111 options, of which at most 25 are advanced', () => {
  const advanced = [...options].filter(([, { isAdvanced }]) => isAdvanced === true).map(([path]) => path);
  expect(options.size).toBeLessThanOrEqual(111);
  expect(advanced.length).toBeLessThanOrEqual(25);
});
