import { describe, expect, it } from 'vitest';
import { JoinedChunks, joinChunks } from '../../../../src/core/protocol/wire/join-chunks.ts';
import { LineSplitter } from '../../../../src/core/protocol/wire/lines.ts';

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

describe('[G-20] [P8] the chunks of a large message', () => {
  const text = (bytes: number): Buffer => Buffer.from(Uint8Array.from({ length: bytes }, (_, n) => n % 251));

  it.each([0, 1, 65_536, 2 ** 22 - 1, 2 ** 22, 2 ** 22 + 1, 9_000_001])(
    '[P1] are all there, in order: %i bytes',
    (bytes) => {
      const chunks = new JoinedChunks(8_000_000);
      const whole = text(bytes);
      for (let round = 0; round < 2; round += 1) {
        for (let at = 0; at < bytes; at += 65_536) chunks.add(Buffer.from(whole.subarray(at, at + 65_536)));
        expect(chunks.first?.[0]).toBe(bytes === 0 ? undefined : 0);
        expect(chunks.take().equals(whole)).toBe(true);
      }
    },
  );

  it('[P8] have a buffer of their size up to 4 MiB, since V8 counts what is left of one as used', () => {
    const chunks = new JoinedChunks(64 * 2 ** 20);
    for (let bytes = 0; bytes <= 2 ** 20; bytes += 65_536) chunks.add(own(65_536, 1));
    const joined = chunks.take();
    expect(joined.buffer.byteLength).toBe(joined.length);
  });

  it('are copied while they come: at most 16 MiB in a turn', () => {
    const chunks = new JoinedChunks(64 * 2 ** 20);
    let buffer: ArrayBufferLike | undefined;
    let bytes = 0;
    const copied: number[] = [];
    for (; bytes < 48 * 2 ** 20; bytes += 65_536) {
      chunks.add(own(65_536, 1));
      const now = chunks.first?.buffer;
      if (bytes > 65_536 && now !== buffer && (chunks.first?.length ?? 0) > 65_536) copied.push(bytes);
      buffer = now;
    }
    expect(copied).toEqual([4 * 2 ** 20 - 65_536, 16 * 2 ** 20]);
    expect(chunks.take()).toHaveLength(bytes);
  });
});
