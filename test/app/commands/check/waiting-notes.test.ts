import { expect, it, onTestFinished, vi } from 'vitest';
import { WaitingNotes } from '../../../../src/app/commands/check/check-command.ts';

it('a long check is a line every ten seconds in which no check begins or ends', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const waiting = new WaitingNotes(2, (line) => void written.push(line));
  waiting.begin('git');
  waiting.begin('maps');
  vi.advanceTimersByTime(9_999);
  waiting.end('git');
  vi.advanceTimersByTime(9_999);
  expect(written).toEqual([]);
  vi.advanceTimersByTime(10_001);
  expect(written).toEqual(Array(2).fill('1 of 2 checked; still checking maps\n'));
  waiting.end('maps');
  vi.advanceTimersByTime(60_000);
  expect(written).toHaveLength(2);
});
