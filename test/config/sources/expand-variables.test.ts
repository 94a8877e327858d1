import { describe, expect, it } from 'vitest';
import { type ConfigurationIssue, type ReportIssue, renderIssueMessage } from '../../../src/config/issues.ts';
import { expandReferences } from '../../../src/config/sources/expand-variables.ts';

const env = { HOME: '/home/me', EMPTY: '', LOOP: '$' + '{HOME}' };

function expand(value: unknown) {
  const faults: ConfigurationIssue[] = [];
  const report: ReportIssue = (path, message) =>
    faults.push({ path, message: renderIssueMessage(message, (key) => key) });
  const readFile = (path: string): string => {
    if (path === '/run/secrets/token') return 's3cret\n';
    if (path === '/run/secrets/from-windows') return '\uFEFFs3cret\r\n';
    throw Object.assign(new Error(path), { code: path === '/denied' ? 'EACCES' : 'ENOENT' });
  };
  return { value: expandReferences(value, 'f: x', { env, readFile, report }), faults };
}

describe('expandReferences', () => {
  it.each([
    ['${HOME}/bin', '/home/me/bin'],
    ['${NONE:-b c}', 'b c'],
    ['${NONE:-}', ''],
    ['${EMPTY:-d}', 'd'],
    ['${EMPTY}', ''],
    ['${HOME:-d}', '/home/me'],
    ['${LOOP}', '${HOME}'],
    ['${env:HOME}/bin', '/home/me/bin'],
    ['Bearer ${file:/run/secrets/token}', 'Bearer s3cret'],
    ['Bearer ${file:/run/secrets/from-windows}', 'Bearer s3cret'],
    ['$HOME ${} ${1} ${a-b} ${', '$HOME ${} ${1} ${a-b} ${'],
  ])('%s → %s', (text, expanded) => {
    expect(expand(text)).toEqual({ value: expanded, faults: [] });
  });

  it.each(['${NONE:-${HOME}}', '${file:/run/${HOME}}', 'a ${env:NONE:-b ${HOME} c}'])(
    '%s is a fault: a reference cannot contain another one',
    (text) => {
      const message = 'has a reference inside a reference, which is not supported; write the inner value itself';
      expect(expand(text).faults).toEqual([{ path: 'f: x', message }]);
    },
  );

  it('expands the strings of lists and the values of objects, nothing else', () => {
    const value = { list: expand(['${HOME}', 1]).value, object: expand({ '${HOME}': '${HOME}', n: null }).value };
    expect(value).toEqual({ list: ['/home/me', 1], object: { '${HOME}': '/home/me', n: null } });
    expect([expand(5).value, expand(null).value, expand(true).value]).toEqual([5, null, true]);
  });

  it('names the place and the variable that is not set', () => {
    expect(expand(['a', '${NONE} ${NADA}']).faults).toEqual([
      { path: 'f: x[1]', message: 'the environment variable NONE is not set; set it, or write ${NONE:-default}' },
      { path: 'f: x[1]', message: 'the environment variable NADA is not set; set it, or write ${NADA:-default}' },
    ]);
  });

  it.each(['${input:token}', '${env:TOKEN}', '${VAR:?why}', '${file:/none}', '${file:/denied}', '${file:}'])(
    '%s is refused rather than passed on',
    (text) => {
      expect(expand(text).faults).toHaveLength(1);
    },
  );
});
