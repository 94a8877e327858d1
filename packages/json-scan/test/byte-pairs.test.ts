import { describe, expect, it } from 'vitest';
import { digits, endOfRun, releasePairs, spaces } from '../src/byte-pairs.ts';

const kinds = [
  ['white space', spaces, ' ', (byte: number) => [0x20, 0x09, 0x0a, 0x0d].includes(byte)],
  ['digits', digits, '7', (byte: number) => byte >= 0x30 && byte <= 0x39],
] as const;

describe('[S-05] the walk through a run by pairs', () => {
  it.each(kinds)(
    'of %s ends at each of all bytes that end it, wherever that lies in its memory',
    (_, kind, of, isOf) => {
      for (let byte = 0; byte < 256; byte += 1) {
        for (let place = 0; place < 20; place += 1) {
          const text = Buffer.alloc(40, 0x22).subarray(place % 3);
          text.fill(of, 0, 30);
          text[place] = byte;
          releasePairs();
          expect(endOfRun(text, 0, kind)).toBe(isOf(byte) ? 30 : place);
          expect(endOfRun(text, Math.min(place, 3), kind)).toBe(isOf(byte) ? 30 : place);
        }
      }
    },
  );

  it.each(kinds)('of %s ends where the text does', (_, kind, of) => {
    for (let length = 0; length < 20; length += 1) {
      for (const offset of [0, 1]) {
        const text = Buffer.alloc(40, of).subarray(offset, offset + length);
        expect(endOfRun(text, 0, kind)).toBe(length);
      }
    }
  });
});
