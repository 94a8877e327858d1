import { describe, expect, test } from 'vitest';
import { logParts, readLogLevels } from '../../../../src/core/ops/log/log-parts.ts';

describe('levels of the log', () => {
  test.each([
    ['debug', {}, 'debug'],
    ['silent', {}, 'silent'],
    ['info,store=debug', { store: 'debug' }, 'info'],
    ['store=debug', { store: 'debug' }, 'info'],
    ['stderr=trace, warn, http=silent', { stderr: 'trace', http: 'silent' }, 'warn'],
  ] as const)('%s', (text, parts, others) => {
    const expected = Object.fromEntries(logParts.map((part) => [part, others]));
    expect(readLogLevels(text)).toEqual({ ok: true, levels: { ...expected, ...parts } });
  });

  test.each([
    ['', 0, 'level', ''],
    ['verbose', 0, 'level', 'verbose'],
    ['info,debug', 1, 'repeated', 'debug'],
    ['info,disk=info', 1, 'part', 'disk'],
    ['store=', 0, 'level', ''],
    ['=info', 0, 'part', ''],
    ['store=debug,store=info', 1, 'repeated', 'store'],
    ['info,', 1, 'level', ''],
    ['Info', 0, 'level', 'Info'],
    ['store:debug', 0, 'level', 'store:debug'],
    ['store=debug=info', 0, 'level', 'debug=info'],
  ])('%j is wrong in item %i', (text, index, wrong, name) => {
    expect(readLogLevels(text)).toEqual({ ok: false, fault: { index, wrong, name } });
  });
});
