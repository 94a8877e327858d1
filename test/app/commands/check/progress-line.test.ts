import { expect, it, onTestFinished, vi } from 'vitest';
import { createProgressLine, createProgressNotes } from '../../../../src/app/commands/check/progress-line.ts';

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

it('without a terminal is a line every ten seconds in which no check begins or ends', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const { show, past } = createProgressNotes((text) => void written.push(text));
  show({ total: 2, done: 0, underWay: ['git', 'maps'] });
  vi.advanceTimersByTime(9_999);
  show({ total: 2, done: 1, underWay: ['maps'] });
  vi.advanceTimersByTime(9_999);
  expect(written).toEqual([]);
  vi.advanceTimersByTime(10_001);
  expect(written).toEqual(Array(2).fill('1 of 2 checked; still checking maps\n'));
  past(() => void written.push('OK    maps\n'));
  show({ total: 2, done: 2, underWay: [] });
  vi.advanceTimersByTime(60_000);
  expect(written.slice(2)).toEqual(['OK    maps\n']);
});
