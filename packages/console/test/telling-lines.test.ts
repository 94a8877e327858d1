import { expect, test } from 'vitest';
import { tellingLines } from '../src/record/telling-lines.ts';

test('the last lines name the cause, and not where a program was', () => {
  const node = [
    'file:///x.mjs:9',
    '  throw new Error()',
    '        ^',
    '',
    'Error: no such database',
    '    at run (x:9:73)',
  ];
  expect(tellingLines([...node, 'Node.js v20.20.2'], 2)).toEqual(['Error: no such database']);
  expect(tellingLines(['starting', ...node], 2)).toEqual(['starting', 'Error: no such database']);
  const frame = ['  File "x.py", line 3, in <module>', "    open(env['URL'])", '         ~~~^^^^^^^'];
  const python = ['Traceback (most recent call last):', ...frame, "KeyError: 'URL'"];
  expect(tellingLines(python, 2)).toEqual(['Traceback (most recent call last):', "KeyError: 'URL'"]);
});

test('the properties of an error do not hide its message, and its cause is shown', () => {
  const failed = ['Error: cannot open the database', '    at open (db.js:41:11)', '    at node:internal/main:22:47 {'];
  const properties = ['  errno: -111,', "  code: 'ECONNREFUSED'", '}', '', 'Node.js v20.20.2'];
  expect(tellingLines([...failed, ...properties], 2)).toEqual(['Error: cannot open the database']);
  const cause = ['  [cause]: Error: connect ECONNREFUSED', '      at run (net.js:16:1) {', "    code: 'X'", '  }', '}'];
  expect(tellingLines([...failed, ...cause, 'ended'], 3)).toEqual([failed[0], cause[0], 'ended']);
  // The start of the stack is not known.
  expect(tellingLines(['warning: no settings', '}'], 2)).toEqual(['warning: no settings']);
});

test('where no line names a cause, the last ones are shown', () => {
  expect(tellingLines(['    at a (x:1)', '    at b (x:2)'], 1)).toEqual(['    at b (x:2)']);
  expect(tellingLines([], 3)).toEqual([]);
});
