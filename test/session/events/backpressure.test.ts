import { describe, expect, it } from 'vitest';
import { BackpressureQueue, type ServerOutput } from '../../../src/session/events/backpressure.ts';
import { asMessage } from '../../support/as-message.ts';

/** An intake whose log takes as long as the test says. */
function createFixture({ lines = 4, bytes = 1_000 } = {}) {
  const handled: string[] = [];
  const log: string[] = [];
  let stores: (() => void)[] = [];
  let isSlow = false;
  const intake = new BackpressureQueue({
    portion: { messages: lines, bytes },
    handle: (output) => void handled.push(textOf(output)),
    storePortion() {
      log.push(`flush ${handled.length}`);
      if (!isSlow) return undefined;
      return new Promise<void>((resolve) => {
        stores.push(resolve);
      });
    },
    fail: (cause) => expect.fail(String(cause)),
    pause: () => void log.push('pause'),
    resume: () => void log.push('resume'),
  });
  return {
    intake,
    handled,
    log,
    slow: (value: boolean) => {
      isSlow = value;
    },
    stored: async () => {
      const waiting = stores;
      stores = [];
      for (const store of waiting) store();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const linesOf = (...texts: (string | number)[]): ServerOutput[] =>
  texts.map((text) => ({ message: asMessage(String(text)), relatedRequests: undefined }));
const textOf = (output: ServerOutput): string => ('message' in output ? output.message.text.toString() : output.state);
const count = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => String(from + n));

describe('the back-pressure on a server', () => {
  it('[P8] handles lines in order, in portions of limited lines, each stored before the next', () => {
    const { intake, handled, log } = createFixture();
    intake.take(linesOf(...count(0, 10)));
    expect(handled).toEqual(count(0, 10));
    expect(log).toEqual(['flush 4', 'flush 8', 'flush 10']);
  });

  it('[P8] handles portions of limited bytes, and at least one line', () => {
    const { intake, log } = createFixture({ bytes: 10 });
    intake.take(linesOf('x'.repeat(100), 'x'.repeat(100), 'x', 'x'.repeat(9), 'x'));
    expect(log).toEqual(['flush 1', 'flush 2', 'flush 4', 'flush 5']);
  });

  it('[P8] pauses the server once while the log is behind, and resumes it after the waiting lines', async () => {
    const { intake, handled, log, slow, stored } = createFixture();
    slow(true);
    intake.take(linesOf(...count(0, 6)));
    expect([handled.length, log]).toEqual([4, ['flush 4', 'pause']]);
    intake.take(linesOf(6, 7)); // what was under way when it was paused
    expect(handled).toHaveLength(4);
    await stored();
    expect([handled.length, log]).toEqual([8, ['flush 4', 'pause', 'flush 8']]);
    await stored();
    expect(log.at(-1)).toBe('resume');
    expect(handled).toEqual(count(0, 8));
    slow(false);
    intake.take(linesOf(8));
    expect([handled, log.filter((entry) => entry === 'pause')]).toEqual([count(0, 9), ['pause']]);
  });

  it('[P8] handles no lines and pauses the server while it is held, and then goes on in order', () => {
    const { intake, handled, log } = createFixture();
    intake.setPaused(true);
    intake.take(linesOf(0, 1));
    intake.take(linesOf(2));
    expect([handled, log]).toEqual([[], ['pause']]);
    intake.setPaused(false);
    expect([handled, log]).toEqual([count(0, 3), ['pause', 'flush 3', 'resume']]);
    intake.setPaused(false);
    expect(log).toHaveLength(3);
  });

  it('[P8] stops after the current portion if it is held in the middle', async () => {
    const { intake, handled, log, slow, stored } = createFixture();
    slow(true);
    intake.take(linesOf(...count(0, 12)));
    intake.setPaused(true);
    await stored();
    expect([handled.length, log.at(-1)]).toEqual([4, 'pause']);
    slow(false);
    intake.setPaused(false);
    expect([handled, log.at(-1)]).toEqual([count(0, 12), 'resume']);
  });

  it('[F12] drains all waiting lines at once, even while it is held or the log is behind, and none twice', async () => {
    for (const held of [true, false]) {
      const { intake, handled, slow, stored } = createFixture();
      slow(true);
      if (held) intake.setPaused(true);
      intake.take(linesOf(...count(0, 9)));
      intake.drain();
      expect(handled).toEqual(count(0, 9));
      await stored();
      intake.setPaused(false);
      await stored();
      expect(handled).toEqual(count(0, 9));
      intake.take(linesOf(9));
      await stored();
      expect(handled).toEqual(count(0, 10));
    }
  });

  it('keeps the order when handling a line adds more lines', () => {
    const handled: string[] = [];
    const intake: BackpressureQueue = new BackpressureQueue({
      portion: { messages: 100, bytes: 100 },
      handle(output) {
        handled.push(textOf(output));
        if (handled.length === 1) intake.take(linesOf(3));
      },
      storePortion: () => undefined,
      fail: (cause) => expect.fail(String(cause)),
      pause: () => undefined,
      resume: () => undefined,
    });
    intake.take(linesOf(1, 2));
    expect(handled).toEqual(['1', '2', '3']);
  });
});
