import { expect, test } from 'vitest';
import { textListener } from '../../../../src/app/commands/check/render-check.ts';

/** Prints a check of Redis, which works or not, with some advice. */
function printCheck(notes: number, hasColors: boolean): string {
  let printed = '';
  const listener = textListener((text) => {
    printed += text;
  }, hasColors);
  const findings = { version: '7.2.4', latencyMs: 1, memoryPolicy: 'noeviction', addresses: [] };
  listener.onRedis({ isFine: true, findings, link: 'local', unreachable: [] });
  listener.onRedis({ isFine: false, why: 'Nothing listens there: OK is what it is not.' });
  listener.onAdvice(Array.from({ length: notes }, () => ({ about: '--redis', text: 'FAIL is no word of a note.' })));
  return printed;
}

test('the last line counts what works, what fails and the notes', () => {
  expect(printCheck(0, false)).toMatch(/\nChecked 2: 1 OK, 1 failed\.\n$/);
  expect(printCheck(1, false)).toMatch(/\nChecked 2: 1 OK, 1 failed, 1 note\.\n$/);
  expect(printCheck(2, false)).toMatch(/\nChecked 2: 1 OK, 1 failed, 2 notes\.\n$/);
});

test('on a terminal, the first word of a line and the bad numbers have colours, and nothing else has', () => {
  const [green, red, yellow, end] = ['\u001b[32m', '\u001b[31m', '\u001b[33m', '\u001b[0m'];
  expect(printCheck(1, true).split('\n')).toEqual([
    `${green}OK${end}    Redis: 7.2.4, answers in 1 ms, maxmemory-policy noeviction, 0 instances`,
    '      other instances reach this one: only on this host',
    `${red}FAIL${end}  Redis: Nothing listens there: OK is what it is not.`,
    `${yellow}NOTE${end}  --redis: FAIL is no word of a note.`,
    `Checked 2: 1 OK, ${red}1 failed${end}, ${yellow}1 note${end}.`,
    '',
  ]);
  expect(printCheck(1, false)).not.toContain('\u001b');
});
