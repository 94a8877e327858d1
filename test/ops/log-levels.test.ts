import { describe, expect, test } from 'vitest';
import { logParts, readLogLevels } from '../../src/ops/log-levels.ts';

describe('levels of the log', () => {
  test.each([
    ['debug', {}, 'debug'],
    ['silent', {}, 'silent'],
    ['info,store=debug', { store: 'debug' }, 'info'],
    ['store=debug', { store: 'debug' }, 'info'],
    ['stderr=trace, warn, http=silent', { stderr: 'trace', http: 'silent' }, 'warn'],
  ] as const)('%s', (text, parts, others) => {
    const expected = Object.fromEntries(logParts.map((part) => [part, others]));
    expect(readLogLevels(text)).toEqual({ ...expected, ...parts });
  });

  test.each([
    '',
    'verbose',
    'info,debug',
    'disk=info',
    'store=',
    '=info',
    'store=debug,store=info',
    'info,',
    'Info',
    'store:debug',
  ])('%j is none', (text) => expect(readLogLevels(text)).toBeUndefined());
});
