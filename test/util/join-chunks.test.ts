import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../src/protocol/wire/lines.ts';
import { joinChunks } from '../../src/util/join-chunks.ts';

/** As a socket gives them: with memory of their own. */
const own = (bytes: number, value: number): Buffer => Buffer.from(new ArrayBuffer(bytes)).fill(value);
const canGiveBack = 'transfer' in ArrayBuffer.prototype; // not with Node.js 20

describe('chunks that are joined', () => {
  it('[P1] are all there, in order', () => {
    const chunks = [own(65_536, 1), Buffer.from('small'), own(20_000, 2)];
    const expected = Buffer.concat(chunks);
    expect(joinChunks(chunks, expected.length)).toEqual(expected);
  });

  it('[P8] give back the memory that is theirs alone, at once, where Node.js can', () => {
    const shared = own(65_536, 3);
    const [large, part, small] = [own(65_536, 1), shared.subarray(0, 40_000), Buffer.from('small')];
    joinChunks([large, part, small], large.length + part.length + small.length);
    expect([large.length, part.length, small.length]).toEqual([canGiveBack ? 0 : 65_536, 40_000, 5]);
    expect(shared.every((byte) => byte === 3)).toBe(true);
  });

  it('stay what they are if there is one', () => {
    const only = own(65_536, 1);
    expect(joinChunks([only], only.length)).toBe(only);
    expect(only).toHaveLength(65_536);
  });

  it('[P1] leave alone the lines before and after that share a chunk with them', () => {
    const splitter = new LineSplitter({ maxLineBytes: 1_000_000 });
    const [first, second, third] = ['a', 'b', 'c'].map((text) => text.repeat(70_000));
    const stream = Buffer.from(`${first}\n${second}\n${third}\nshort\n`);
    const lines: Buffer[] = [];
    for (let from = 0; from < stream.length; from += 65_536) {
      lines.push(...splitter.push(Buffer.from(new Uint8Array(stream.subarray(from, from + 65_536)).buffer)));
    }
    expect(lines.map((line) => line.toString())).toEqual([first, second, third, 'short']);
  });
});
