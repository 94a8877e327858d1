import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ResponseDelaySink } from '../../../../src/core/http/replies/response-delay-sink.ts';
import { createBatch, createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import { createFakeSink } from '../../../support/fake-reply.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const progress = (n: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 't', progress: n },
});
const log = { jsonrpc: '2.0', method: 'notifications/message', params: {} };
const response = (id: number, size = 0) => ({ jsonrpc: '2.0', id, result: { text: 'x'.repeat(size) } });

function createFixture() {
  const sink = createFakeSink();
  const apart = new ResponseDelaySink(sink);
  const drains: number[] = [];
  apart.onDrain(() => void drains.push(1));
  const writeAll = (...messages: readonly object[]): boolean =>
    apart.write(createMessageBatch(...messages.map((message) => Buffer.from(JSON.stringify(message)))));
  return { sink, apart, write: writeAll, drains };
}

describe('a response behind progress', () => {
  it('waits a moment, with all that is behind it, in order', () => {
    const { sink, write } = createFixture();
    expect(write(progress(1), log, response(1), log)).toBe(true);
    write(response(2));
    expect(sink.messages).toEqual([progress(1), log]);
    vi.advanceTimersByTime(10);
    expect(sink.messages).toEqual([progress(1), log, response(1), log, response(2)]);
  });

  it('waits in another write too, but not when time has passed', () => {
    const { sink, write } = createFixture();
    write(progress(1));
    vi.advanceTimersByTime(4);
    write(response(1));
    expect(sink.messages).toHaveLength(1);
    vi.advanceTimersByTime(6);
    expect(sink.messages).toHaveLength(2);
    write(progress(2));
    vi.advanceTimersByTime(10);
    write(response(2));
    expect(sink.messages).toHaveLength(4);
  });

  it('waits behind progress that waited itself', () => {
    const { sink, write } = createFixture();
    write(progress(1), response(1), progress(2), response(2));
    vi.advanceTimersByTime(10);
    expect(sink.messages).toEqual([progress(1), response(1), progress(2)]);
    vi.advanceTimersByTime(10);
    expect(sink.messages).toHaveLength(4);
  });

  it('goes out at the end of the stream, and never after it is gone', () => {
    const { sink, apart, write } = createFixture();
    write(progress(1), response(1));
    apart.end();
    expect([sink.messages, sink.state]).toEqual([[progress(1), response(1)], 'ended']);
    const other = createFixture();
    other.write(progress(1), response(1));
    other.sink.leave();
    vi.advanceTimersByTime(100);
    expect(other.sink.messages).toEqual([progress(1)]);
  });

  it('[P8] holds no more than a little: then the writer waits until it is gone', () => {
    const { sink, write, drains } = createFixture();
    expect(write(progress(1), response(1, 100_000))).toBe(true);
    expect(write(response(2, 200_000))).toBe(false);
    expect(drains).toEqual([]);
    vi.advanceTimersByTime(10);
    expect([sink.messages.length, drains]).toEqual([3, [1]]);
  });
});

describe('anything else', () => {
  it('goes out at once', () => {
    const { sink, apart, write } = createFixture();
    write(response(1), log, response(2), progress(1), progress(2), log);
    apart.write(createBatch([{ kind: 'retry', retryMs: 5 }, { kind: 'gap' }]));
    expect(sink.events.items).toHaveLength(8);
  });

  it('waits where the client does not keep up', () => {
    const { sink, write, drains } = createFixture();
    sink.keepsUp = false;
    expect(write(log)).toBe(false);
    sink.drain();
    expect(drains).toEqual([1]);
  });
});
