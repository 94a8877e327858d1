import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BookedCall, CallBook } from '../../../src/core/multiplex/call-book.ts';
import { createMessage } from '../../../src/core/protocol/message/message.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const call = (id: string | number, more: Partial<BookedCall> = {}): BookedCall => ({ id, ...more });

describe('a book of calls', () => {
  it('has the calls in the order of their arrival, by the id with its type', () => {
    const book = new CallBook();
    const [one, text, two] = [call(1), call('1'), call(2)];
    for (const each of [one, text, two]) book.add(each);
    expect([book.size, book.all(), [...book.values()]]).toEqual([3, [one, text, two], [one, text, two]]);
    expect([1, '1', '2', null, undefined].map((id) => book.get(id))).toEqual([
      one,
      text,
      ...[1, 2, 3].map(() => undefined),
    ]);
  });

  it('gives a call away once, and knows another one with the same id from it', () => {
    const book = new CallBook();
    const [first, second] = [call(1), call(1)];
    book.add(first);
    expect([book.take(1), book.take(1), book.take(null)]).toEqual([first, undefined, undefined]);
    book.add(second);
    expect([book.has(1), book.holds(first), book.holds(second)]).toEqual([true, false, true]);
  });

  it('[P9] says when no call is awaited, and since when', async () => {
    const book = new CallBook();
    await book.whenEmpty();
    for (const id of [1, 2]) book.add(call(id));
    let isEmpty = false;
    const empty = book.whenEmpty().then(() => {
      isEmpty = true;
    });
    vi.advanceTimersByTime(50);
    book.take(1);
    await Promise.resolve();
    expect(isEmpty).toBe(false);
    book.take(2);
    expect(book.emptySince).toBe(performance.now());
    await empty;
    expect(isEmpty).toBe(true);
  });

  it('[P2] remembers a cancelled call until its answer, or for a while', () => {
    const book = new CallBook();
    const [answered, silent] = [call(1, { progressToken: 'a' }), call(2, { progressToken: 'b' })];
    const onOver = vi.fn();
    for (const each of [answered, silent]) {
      book.add(each);
      book.cancel(each, 1_000, onOver);
    }
    expect([book.size, book.get(1), book.find(1), book.byToken('b'), book.hasCancelled]).toEqual([
      ...[0, undefined, answered, silent, true],
    ]);
    expect([book.settle(1), [...book.speakable()]]).toEqual([answered, [silent]]);
    vi.advanceTimersByTime(1_000);
    expect([book.isClear, book.find(2), book.byToken('b'), onOver.mock.calls.length]).toEqual([
      true,
      undefined,
      undefined,
      1,
    ]);
    expect(book.byToken('a')).toBe(answered);
  });

  it('[P8] remembers 1,000 cancelled calls, and knows for a while that it has forgotten some', () => {
    const book = new CallBook();
    for (let id = 1; id <= 1_001; id += 1) {
      const each = call(id);
      book.add(each);
      book.cancel(each, 1_000);
    }
    expect([book.find(1), book.find(2)?.id, book.isInDoubt]).toEqual([undefined, 2, true]);
    for (let id = 2; id <= 1_001; id += 1) book.settle(id);
    expect([[...book.speakable()], book.isClear]).toEqual([[], false]);
    vi.advanceTimersByTime(1_000);
    expect([book.isInDoubt, book.isClear]).toEqual([false, true]);
  });

  it('[P8] knows the progress tokens of the last 64 answered calls', () => {
    const book = new CallBook();
    for (let id = 1; id <= 65; id += 1) {
      book.add(call(id, { progressToken: id }));
      book.settle(id);
    }
    expect([book.byToken(1), book.byToken(2)?.id, book.byToken(65)?.id]).toEqual([undefined, 2, 65]);
  });

  it('[P8] counts the bytes of the requests that it keeps', () => {
    const book = new CallBook();
    const request = createMessage({ id: 1, method: 'tools/list', params: { text: 'x'.repeat(1_000) } });
    const calls = [1, 2, 3].map((id) => call(id, { request, progressToken: id }));
    for (const each of calls) book.add(each);
    expect(book.heldBytes).toBe(3 * request.text.length);
    const [first, second] = calls as [BookedCall, BookedCall];
    book.forgetRequest(first);
    book.cancel(second, 1_000);
    expect([book.heldBytes, second.request]).toEqual([request.text.length, undefined]);
    book.settle(1);
    book.settle(3);
    expect([book.heldBytes, book.byToken(3)?.request]).toEqual([0, undefined]);
  });
});
