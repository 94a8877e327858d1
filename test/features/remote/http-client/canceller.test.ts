import { expect, test } from 'vitest';
import { Canceller } from '../../../../src/features/remote/http-client/canceller.ts';

test('a cut tells once, and its signal is aborted whether it was asked for before or after', () => {
  const cut = new Canceller();
  let told = 0;
  cut.onAbort = () => {
    told += 1;
  };
  const { signal } = cut;
  expect([cut.aborted, signal.aborted]).toEqual([false, false]);
  cut.abort();
  cut.abort();
  expect([cut.aborted, signal.aborted, told]).toEqual([true, true, 1]);

  const late = new Canceller();
  late.abort();
  expect(late.signal.aborted).toBe(true);
});
