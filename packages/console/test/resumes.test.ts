import { expect, test } from 'vitest';
import { recentSpanMs } from '../src/record/incidents/recent-sum.ts';
import { Resumes } from '../src/record/incidents/resumes.ts';

test('resumed and broken streams count for five minutes; one that had ended does not count', () => {
  let now = 0;
  const resumes = new Resumes(() => now);
  expect(resumes.recent).toEqual({ resumed: 0, broken: 0, last: undefined });
  for (const outcome of ['resumed', 'history_lost', 'unknown', 'failed', 'resumed', 'complete'] as const)
    resumes.add('files', 'abc', outcome);
  expect(resumes.recent).toMatchObject({ resumed: 2, broken: 3, last: { server: 'files', isBroken: false } });
  resumes.add('mail', undefined, 'history_lost');
  now += recentSpanMs;
  expect(resumes.recent).toMatchObject({ resumed: 0, broken: 0, last: { server: 'mail', isBroken: true } });
});
