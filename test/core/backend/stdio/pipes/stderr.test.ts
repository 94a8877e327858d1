import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { escapeControlCharacters } from '../../../../../src/core/backend/stdio/pipes/printable.ts';
import { LineTail, type StderrLimits, StderrReader } from '../../../../../src/core/backend/stdio/pipes/stderr.ts';
import { openChild } from '../harness.ts';

function drain(limits: Partial<StderrLimits> = {}) {
  const stream = new PassThrough();
  const lines: string[] = [];
  const stderr = new StderrReader(stream, (line) => lines.push(line), {
    maxLoggedBytes: 2_048,
    linesPerSecond: 20,
    burstLines: 100,
    ...limits,
  });
  const write = (chunk: string | Buffer) => {
    stream.emit('data', Buffer.from(chunk));
  };
  return { stream, lines, write, stderr };
}

describe('StderrReader', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('splits lines wherever chunks were cut, without CR and without empty ones', () => {
    const { lines, write, stream } = drain();
    const text = Buffer.from('one\r\n\nzwölf\nlast');
    for (const byte of text) write(Buffer.of(byte));
    expect(lines).toEqual(['one', 'zwölf']);
    stream.emit('close');
    expect(lines).toEqual(['one', 'zwölf', 'last']);
  });

  it('P8: holds and reports a bounded part of a line that never ends', () => {
    const { lines, write } = drain({ maxLoggedBytes: 10 });
    for (let n = 0; n < 100; n++) write('0123456');
    write('\nnext\n');
    expect(lines).toEqual(['0123456012 … (690 more bytes)', 'next']);
  });

  it('[F18] a flood is reported at the allowed rate, with the number of dropped lines', () => {
    const { lines, write } = drain({ linesPerSecond: 20, burstLines: 100 });
    write('x\n'.repeat(1_000));
    expect(lines).toHaveLength(100);
    vi.advanceTimersByTime(1_000);
    expect(lines.at(-1)).toMatch(/^\(900 more lines of stderr were dropped/);
    write('y\n'.repeat(50));
    expect(lines.filter((line) => line === 'y')).toHaveLength(20);
    vi.advanceTimersByTime(1_000);
    expect(lines.at(-1)).toMatch(/^\(30 more/);
  });

  it('[F18] the dropped lines are told also when the stream ends', () => {
    const { lines, write, stream } = drain({ burstLines: 1 });
    write('a\nb\n');
    stream.emit('close');
    expect(lines).toEqual(['a', expect.stringMatching(/^\(1 more/)]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('keeps the last lines for the operator, whatever the rate', () => {
    const { write, stderr } = drain({ burstLines: 0 });
    for (let n = 0; n < 1_000; n++) write(`line ${n}\r\n`);
    write('\x1b[31mno end');
    expect(stderr.recentLines()).toEqual([...Array(19).keys()].map((n) => `line ${n + 981}`).concat('\\x1b[31mno end'));
  });
});

describe('stderr of a server', () => {
  it('[F18] is drained although nobody listens, so that the server can answer', async () => {
    const { messages, end } = openChild('floods-stderr', ['100000'], { onStderr: () => undefined });
    expect(await messages.next()).toBe('"done"');
    expect((await end()).lastOutput).toHaveLength(20);
  });

  it('[F18] never becomes a message', async () => {
    const opened = openChild('floods-stderr', ['1000']);
    const { lastOutput } = await opened.end();
    expect(opened.messages.items).toEqual(['"done"']);
    expect(opened.stderr.items[0]).toBe('line 0');
    expect(opened.stderr.items.length).toBeLessThan(200);
    expect(lastOutput?.at(-1)).toBe('line 999');
  });
});

describe('printable', () => {
  it('P12: a server cannot forge log lines or terminal escapes', () => {
    const attack = 'a\tb\r{"level":"fatal"}\x1b]0;x\x07\x7f\u0085\u009b\u2028\u2029\u202e\ufffe ü😀';
    expect(escapeControlCharacters(Buffer.from(attack))).toBe(
      'a\tb\\x0d{"level":"fatal"}\\x1b]0;x\\x07\\x7f\\x85\\x9b\\u2028\\u2029\\u202e\ufffe ü😀',
    );
  });

  it('reads what is not UTF-8', () => {
    expect(escapeControlCharacters(Buffer.from([0x61, 0xff, 0x62]))).toBe('a\ufffdb');
  });
});

describe('LineTail', () => {
  it('keeps the last bytes of chunks of any size', () => {
    const text = [...Array(500).keys()].join(' ');
    for (const chunkBytes of [1, 3, 10, 11, 100, 5_000]) {
      const tail = new LineTail(10);
      for (let at = 0; at < text.length; at += chunkBytes) tail.push(Buffer.from(text.slice(at, at + chunkBytes)));
      expect(tail.read().toString()).toBe(text.slice(-10));
    }
  });
});
