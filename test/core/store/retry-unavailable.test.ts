import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { retryWhileUnavailable } from '../../../src/core/store/retry-unavailable.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

const away = (): StoreUnavailable => new StoreUnavailable('full');

/** An operation that fails as often as the test says, on a clock that the test moves. */
function failing(times: number, cause: () => Error = away) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let tries = 0;
  const operation = async (): Promise<number> => {
    tries += 1;
    if (tries <= times) throw cause();
    return tries;
  };
  return { operation, tries: () => tries };
}

describe('patiently', () => {
  it('gives at once what the operation gives', async () => {
    const { operation } = failing(0);
    expect(await retryWhileUnavailable(operation, new AbortController().signal)).toBe(1);
  });

  it('[P7] asks again while the store is not available, with pauses that grow up to a second', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1); // the longest pause each time
    onTestFinished(() => void vi.restoreAllMocks());
    const pauses = [25, 50, 100, 200, 400, 800, 1_000, 1_000];
    const { operation, tries } = failing(pauses.length);
    const result = retryWhileUnavailable(operation, new AbortController().signal);
    for (const [index, pauseMs] of pauses.entries()) {
      await vi.advanceTimersByTimeAsync(pauseMs - 1);
      expect(tries()).toBe(index + 1);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(await result).toBe(pauses.length + 1);
  });

  it('spreads the pauses over their upper half, so that not all ask together', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    onTestFinished(() => void vi.restoreAllMocks());
    const { operation, tries } = failing(1);
    const result = retryWhileUnavailable(operation, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(11);
    expect(tries()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await result).toBe(2);
  });

  it('rejects at once with any other fault, and asks no more', async () => {
    const cause = new RangeError('a hole');
    const { operation, tries } = failing(5, () => cause);
    await expect(retryWhileUnavailable(operation, new AbortController().signal)).rejects.toBe(cause);
    expect(tries()).toBe(1);
  });

  it('rejects with what the store said once nobody waits, in the middle of a pause too', async () => {
    const { operation, tries } = failing(Number.POSITIVE_INFINITY);
    const controller = new AbortController();
    const result = retryWhileUnavailable(operation, controller.signal);
    const rejected = expect(result).rejects.toBeInstanceOf(StoreUnavailable);
    controller.abort();
    await rejected;
    expect(tries()).toBe(1);
    await expect(retryWhileUnavailable(operation, controller.signal)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(tries()).toBe(2);
  });
});

describe('many operations that wait on one signal', () => {
  it('make Node.js warn of no leak', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const stop = new AbortController();
    const waiting = Array.from({ length: 20 }, () => {
      let tries = 0;
      const operation = async (): Promise<void> => {
        tries += 1;
        if (tries === 1) throw away();
      };
      return retryWhileUnavailable(operation, stop.signal);
    });
    await Promise.all(waiting);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  });
});
