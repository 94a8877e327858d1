import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flattenLineBreaks, LineSplitter } from '../../../../src/core/protocol/wire/lines.ts';
import { costOf } from '../../../support/cpu-time.ts';
import { cut, split, splitPlainly } from '../../../support/plain-lines.ts';

const bytesOfInterest = fc
  .array(fc.constantFrom('\n', '\r', '\r\n', '\xef\xbb\xbf', '\xef', '\xe2\x80\xa8', '{"a":1}', 'x', 'long '.repeat(4)))
  .map((parts) => Buffer.from(parts.join(''), 'latin1'));

describe('LineSplitter', () => {
  it('gives a line that lies in one chunk without a copy', () => {
    const chunk = Buffer.from('{"a":1}\n{"b":2}\n');
    const lines = new LineSplitter({ maxLineBytes: 100 }).push(chunk);
    expect(lines.map(({ buffer }) => buffer === chunk.buffer)).toEqual([true, true]);
  });

  it.each([
    ['LF', '{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
    ['CRLF', '{"a":1}\r\n{"b":2}\r\n', ['{"a":1}', '{"b":2}']],
    ['one CR of two', '{}\r\r\n', ['{}\r']],
    ['CR inside JSON stays', '{\r"a":1}\n', ['{\r"a":1}']],
    ['byte order marks', '\ufeff{}\n\ufeff{}\n', ['{}', '{}']],
    ['several of them', '\ufeff\ufeff{}\n', ['{}']],
    ['nothing but a byte order mark', '\ufeff', []],
    ['empty lines', '\n\r\n{}\n\n', ['{}']],
    ['no line end at the end', '{}\n[]', ['{}', '[]']],
    ['U+2028, U+2029 and U+0085 are no line ends', '"\u2028\u2029\u0085"\n', ['"\u2028\u2029\u0085"']],
  ])('[F16] %s, cut at every byte', (_, text, expected) => {
    const bytes = Buffer.from(text);
    const lines = expected.map((line) => Buffer.from(line).toString('latin1'));
    expect(split([bytes]).lines).toEqual(lines);
    expect(split([...bytes].map((byte) => Buffer.of(byte))).lines).toEqual(lines);
  });

  it('[F16] gives the same lines however the stream is cut into chunks', () => {
    fc.assert(
      fc.property(
        bytesOfInterest,
        fc.array(fc.nat()),
        fc.integer({ min: 3, max: 40 }),
        (bytes, places, maxLineBytes) => {
          expect(split(cut(bytes, places), maxLineBytes)).toEqual(splitPlainly(bytes, maxLineBytes));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('P8: takes a line of exactly the limit and reports a longer one, finished or not', () => {
    expect(split([Buffer.from('12345\n')], 5)).toEqual({ lines: ['12345'], overflowed: false });
    expect(split([Buffer.from('ok\n123456\nlost\n')], 5)).toEqual({ lines: ['ok'], overflowed: true });
    expect(split([Buffer.from('123'), Buffer.from('456')], 5)).toEqual({ lines: [], overflowed: true });
    expect(split([Buffer.from('123456'), Buffer.from('\nlost\n')], 5)).toEqual({ lines: [], overflowed: true });
  });

  it('does not copy a line that lies in one chunk', () => {
    const chunk = Buffer.from('{"a":1}\n{"b":2}\n');
    const [, second] = new LineSplitter({ maxLineBytes: 100 }).push(chunk);
    expect(second?.buffer).toBe(chunk.buffer);
    expect(second?.byteOffset).toBe(chunk.byteOffset + 8);
  });

  it('does not write into a line that it has given away', () => {
    const splitter = new LineSplitter({ maxLineBytes: 100 });
    splitter.push(Buffer.from('{"first'));
    const [first] = splitter.push(Buffer.from('":1}\n{"second":2'));
    splitter.push(Buffer.from('}\n'));
    expect(first?.toString()).toBe('{"first":1}');
  });

  it('[F15] reads a line of 64 MiB in chunks of 16 KiB in linear time', () => {
    const chunkBytes = 16 * 1024;
    const chunks = 4_096;
    const read = (): void => {
      const splitter = new LineSplitter({ maxLineBytes: 64 * 1024 * 1024 });
      for (let n = 0; n < chunks; n++) splitter.push(Buffer.alloc(chunkBytes, 'x'));
      const [line] = splitter.push(Buffer.from('\n'));
      expect(line?.length).toBe(chunks * chunkBytes);
    };
    // Joining the whole buffer at every chunk would copy 128 GiB: minutes. Linear time is some 50 ms.
    expect(costOf(read, 100)).toBeLessThan(100);
  });

  it('[F15] holds little more than the bytes of a line that comes byte by byte', () => {
    const splitter = new LineSplitter({ maxLineBytes: 1024 * 1024 });
    const byte = Buffer.from('x');
    const before = process.memoryUsage();
    for (let n = 0; n < 1024 * 1024; n++) splitter.push(byte);
    const after = process.memoryUsage();
    const grownBytes = after.arrayBuffers - before.arrayBuffers;
    expect(splitter.flush()?.length).toBe(1024 * 1024);
    expect(grownBytes).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('flattenLineBreaks', () => {
  it('P1: turns raw line breaks into spaces in a copy, so that a pretty-printed message is one line', () => {
    const pretty = Buffer.from('{\r\n  "a": "\\n",\n  "b": 12345678901234567890\r}');
    const before = Buffer.from(pretty);
    expect(flattenLineBreaks(pretty).toString()).toBe('{    "a": "\\n",   "b": 12345678901234567890 }');
    expect(pretty).toEqual(before);
  });

  it('P1: gives back the same bytes if there is nothing to change', () => {
    const message = new TextEncoder().encode('{"a":"\u2028"}');
    expect(flattenLineBreaks(message).buffer).toBe(message.buffer);
  });

  it('P1: changes no byte but CR and LF, and no JSON value', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(0, 1, 2), (json, indent) => {
        const message = new TextEncoder().encode(JSON.stringify(JSON.parse(json), null, indent));
        const flat = Buffer.from(flattenLineBreaks(message)).toString();
        expect(flat).not.toMatch(/[\r\n]/);
        expect(JSON.parse(flat)).toEqual(JSON.parse(json));
        expect(Buffer.byteLength(flat)).toBe(message.length);
      }),
    );
  });
});
