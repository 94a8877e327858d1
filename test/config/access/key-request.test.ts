import { expect, test } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';

const read = (...argv: string[]) => {
  const result = readConfiguration({ argv: ['key', ...argv], env: {}, readFile: () => '' });
  if (!result.ok || result.command !== 'key') throw new Error('The command was refused.');
  return result.key;
};

test('scopes can be given one by one and together', () => {
  const { name, scopes, addTo } = read(
    'ada',
    '--scope',
    'gangway:status gangway:drain',
    '--add=k.json',
    '--scope',
    'x',
  );
  expect([name, scopes, addTo]).toEqual(['ada', ['gangway:status', 'gangway:drain', 'x'], 'k.json']);
});

test('an end is a time from now, or a time', () => {
  const dayMs = 24 * 3_600_000;
  const end = Date.parse(read('ada', '--expires', '90d').expires ?? '');
  expect(Math.abs(end - Date.now() - 90 * dayMs)).toBeLessThan(dayMs);
  expect(read('ada', '--expires', '2090-01-31T00:00:00+01:00').expires).toBe('2090-01-30T23:00:00Z');
  expect(read('ada').expires).toBeUndefined();
});

test.each(['0', '-1d', 'tomorrow', '90', '2020-01-01T00:00:00Z', '2090', '1000000d'])(
  '%s is no end of a key',
  (expires) => {
    expect(() => read('ada', '--expires', expires)).toThrow();
  },
);
