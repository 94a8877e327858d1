import { expect, it } from 'vitest';
import { options } from '../../../src/config/options/option-names.ts';

/**
 * Each option costs lines in five pages, and combinations that nobody tests (docs/decisions/0192): a hundred, and those of
 * long calls (docs/decisions/0221) and of what operators watch (docs/decisions/0212, 0216), policies (0220), results (0225), and packages
 * (0209).
 */
it('there are at most 114 options, of which at most 27 are advanced', () => {
  const advanced = [...options].filter(([, { isAdvanced }]) => isAdvanced === true).map(([path]) => path);
  expect(options.size).toBeLessThanOrEqual(114);
  expect(advanced.length).toBeLessThanOrEqual(27);
});
