import { expect, test } from 'vitest';
import { SessionByProcess } from '../../../../src/core/ops/log/session-by-process.ts';

const named = (session: string) => ({ server: 's', session });

test('processes have the names of their sessions until those end, also when a number is given again', () => {
  const names = new SessionByProcess();
  names.set(named('a'), 7);
  names.set(named('b'), undefined);
  expect([names.sessionOf(7), names.sessionOf(8), names.sessionOf(undefined)]).toEqual(['a', undefined, undefined]);
  names.set(named('a'), 8); // restored
  expect([names.sessionOf(7), names.sessionOf(8)]).toEqual([undefined, 'a']);
  names.set(named('c'), 8); // the process of a has ended before its session has
  names.forget(named('a'));
  expect(names.sessionOf(8)).toBe('c');
  names.forget(named('c'));
  expect(names.sessionOf(8)).toBeUndefined();
});
