import { expect, it } from 'vitest';
import { CredentialMarks } from '../../../src/core/keys/credential-marks.ts';
import { configuredKeys } from '../../../src/core/keys/state-keys.ts';

const marks = new CredentialMarks(configuredKeys(['k'.repeat(32)]));

it('[P11] credential marks are equal only for the same credentials at the same server, whatever their order', async () => {
  const mark = await marks.markOf('git', { A: '1', B: '2' });
  expect(mark).toMatch(/^[\w-]{43}$/);
  expect(await marks.markOf('git', { B: '2', A: '1' })).toBe(mark);
  const others = [
    marks.markOf('hub', { A: '1', B: '2' }),
    marks.markOf('git', { A: '2', B: '1' }),
    marks.markOf('git', { A: '1' }),
    marks.markOf('git', { A: '12' }),
    new CredentialMarks(configuredKeys(['l'.repeat(32)])).markOf('git', { A: '1', B: '2' }),
  ];
  expect(new Set([mark, ...(await Promise.all(others))]).size).toBe(6);
});

it('credential marks agree between instances with one key, and no credentials have no mark', async () => {
  const other = new CredentialMarks(configuredKeys(['k'.repeat(32), 'o'.repeat(32)]));
  expect(await other.markOf('git', { A: '1' })).toBe(await marks.markOf('git', { A: '1' }));
  expect(await marks.markOf('git', {})).toBe('');
});
