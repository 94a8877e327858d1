import { describe, expect, test } from 'vitest';
import { ResponseBody } from '../../../../src/features/remote/http-client/response-body.ts';

/** A body, what its connection was told, and what its reader was. */
function setUp() {
  const told: string[] = [];
  const body = new ResponseBody({
    resume: () => told.push('resume'),
    abort(cause) {
      told.push('cut');
      body.end(cause);
    },
  });
  const read = (): void =>
    body.read({
      onChunk: (chunk) => told.push(chunk.toString()),
      onEnd: (cause) => told.push(cause === undefined ? 'complete' : `broken: ${cause.message}`),
    });
  return { body, told, read, take: (text: string) => body.take(Buffer.from(text)) };
}

describe('a body', () => {
  test('that came whole before anybody reads is told whole', () => {
    const { body, told, read, take } = setUp();
    expect(take('a')).toBe(true);
    expect(take('b')).toBe(true);
    body.end();
    expect(told).toEqual([]);
    read();
    expect(told).toEqual(['a', 'b', 'complete']);
  });

  test('stops its connection while it is paused or much is unread, and starts it again', () => {
    const { body, told, read, take } = setUp();
    expect(take('x'.repeat(64 * 1024))).toBe(false);
    read();
    expect(told.splice(0)).toEqual(['x'.repeat(64 * 1024), 'resume']);
    expect(take('a')).toBe(true);
    body.pause();
    expect(take('b')).toBe(false);
    expect(told.splice(0)).toEqual(['a']);
    body.resume();
    expect(told).toEqual(['b', 'resume']);
  });

  test('that breaks while it is paused tells first what had come', () => {
    const { body, told, read, take } = setUp();
    read();
    body.pause();
    take('a');
    body.end(new Error('reset'));
    body.end();
    expect(told).toEqual([]);
    body.resume();
    expect(told).toEqual(['a', 'broken: reset']);
  });

  test('that is paused by its own reader keeps the rest', () => {
    const { body, told, take } = setUp();
    take('a');
    take('b');
    body.read({
      onChunk(chunk) {
        told.push(chunk.toString());
        body.pause();
      },
      onEnd: () => told.push('end'),
    });
    expect(told).toEqual(['a']);
    body.end();
    body.resume();
    expect(told).toEqual(['a', 'b']);
    body.resume();
    expect(told).toEqual(['a', 'b', 'end']);
  });

  test('that is given up tells so once and nothing after it, before its end and behind it', () => {
    const open = setUp();
    open.read();
    open.body.destroy(new Error('silent'));
    open.body.destroy();
    expect(open.told).toEqual(['cut', 'broken: silent']);

    const whole = setUp();
    whole.body.pause();
    whole.take('a');
    whole.body.end();
    whole.read();
    whole.body.destroy();
    expect(whole.told).toEqual(['broken: The body was given up.']);
  });

  test('of no interest is read to its end, or given up when it is long', async () => {
    const short = setUp();
    short.take('a');
    short.body.end();
    await short.body.drain();
    expect(short.told).toEqual([]);

    const long = setUp();
    const dumped = long.body.drain();
    long.take('x'.repeat(64 * 1024));
    expect(long.told).toEqual([]);
    long.take('x');
    await dumped;
    expect(long.told).toEqual(['cut']);
  });
});
