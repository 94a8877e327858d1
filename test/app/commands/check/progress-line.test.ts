import { expect, it } from 'vitest';
import { createProgressLine } from '../../../../src/app/commands/check/progress-line.ts';

/** What stands on a terminal after all that was written: lines, the last one without its end. */
function startScreen(columns: number) {
  let text = '';
  const write = (more: string): void => {
    // What is erased is the line on which the terminal stands.
    for (const [index, part] of more.split('\r\u001b[K').entries()) {
      text = (index === 0 ? text : text.replace(/[^\n]*$/, '')) + part;
    }
  };
  return { ...createProgressLine({ columns, write }), write, shown: () => text };
}

it('says what is under way below what was written, and is gone in the end', () => {
  const { show, past, write, shown } = startScreen(80);
  show({ total: 3, done: 0, underWay: ['git', 'maps'] });
  expect(shown()).toBe('0 of 3 checked; checking git, maps');
  show({ total: 3, done: 1, underWay: ['maps'] });
  past(() => write('OK    git\n'));
  expect(shown()).toBe('OK    git\n1 of 3 checked; checking maps');
  show({ total: 3, done: 3, underWay: [] });
  past(() => write('OK    maps\n'));
  expect(shown()).toBe('OK    git\nOK    maps\n');
});

it('is never longer than the terminal is wide, for what is wrapped could not be erased', () => {
  const { show, shown } = startScreen(20);
  show({ total: 30, done: 10, underWay: ['a-long-name', 'another'] });
  expect(shown()).toBe('10 of 30 checked; …');
  const unknown = startScreen(0);
  unknown.show({ total: 30, done: 10, underWay: ['a'] });
  expect(unknown.shown()).toBe('10 of 30 checked; checking a');
});
