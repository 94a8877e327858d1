import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StringRuns } from '../src/string-run.ts';

/** The same by a loop that is plain to see. */
function endPlainly(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && bytes[i] !== 0x22 && bytes[i] !== 0x5c && (bytes[i] as number) >= 0x20) i += 1;
  return i;
}

/** A copy at an offset of its ArrayBuffer, among bytes that would end a run. */
function atOffset(bytes: Uint8Array, offset: number): Uint8Array {
  const memory = new ArrayBuffer(bytes.length + 16);
  new Uint8Array(memory).fill(0x22);
  const copy = new Uint8Array(memory, offset, bytes.length);
  copy.set(bytes);
  return copy;
}

/** Bytes that end a run, their neighbours, and those that share bits with them in a word. */
const edges = [0x00, 0x01, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0x9f, 0xa0, 0xa2, 0xdc, 0xff];

describe('StringRuns.endOf', () => {
  it('finds every byte of all 256 at every place of a run, at every alignment', () => {
    for (let byte = 0; byte < 256; byte++) {
      for (let place = 0; place < 40; place++) {
        const bytes = new Uint8Array(48).fill(0x61);
        bytes[place] = byte;
        const copy = atOffset(bytes, place & 7);
        expect(new StringRuns(copy).endOf(0)).toBe(endPlainly(bytes, 0));
      }
    }
  });

  it('finds the first of several ends, whatever stands around it', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            { weight: 12, arbitrary: fc.constantFrom(0x61, 0x7f, 0x80, 0xff, 0x21, 0x23) },
            fc.constantFrom(...edges),
          ),
          {
            maxLength: 120,
          },
        ),
        fc.nat({ max: 7 }),
        fc.nat({ max: 120 }),
        (bytes, offset, from) => {
          const copy = atOffset(Uint8Array.from(bytes), offset);
          const at = Math.min(from, copy.length);
          expect(new StringRuns(copy).endOf(at)).toBe(endPlainly(copy, at));
        },
      ),
      { numRuns: 10_000 },
    );
  });

  it('finds the ends of long runs, whatever they end with, wherever that lies in a word', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            length: fc.nat({ max: 6_000 }),
            filler: fc.constantFrom(0x61, 0x7f, 0x80, 0xff),
            end: fc.constantFrom(...edges),
          }),
          { minLength: 1, maxLength: 4 },
        ),
        fc.nat({ max: 7 }),
        (runs, offset) => {
          const bytes = Buffer.concat(
            runs.map(({ length, filler, end }) => Buffer.from([...Buffer.alloc(length, filler), end])),
          );
          const copy = atOffset(bytes, offset);
          const plain = new StringRuns(copy);
          for (let at = 0; at < copy.length; at = plain.endOf(at) + 1)
            expect(plain.endOf(at)).toBe(endPlainly(copy, at));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('finds the ends in random bytes, run after run with one object', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 7 }), (bytes, offset) => {
        const copy = atOffset(bytes, offset);
        const runs = new StringRuns(copy);
        for (let at = 0; at <= copy.length; at++) {
          const end = runs.endOf(at);
          expect(end).toBe(endPlainly(copy, at));
          at = end;
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('ends at the end of the text, and never beyond', () => {
    for (let length = 0; length <= 80; length++) {
      for (let offset = 0; offset < 8; offset++) {
        const runs = new StringRuns(atOffset(new Uint8Array(length).fill(0x61), offset));
        for (let at = 0; at <= length; at++) expect(runs.endOf(at)).toBe(length);
      }
    }
  });

  it('reads the last bytes of a text that ends with its memory, whose size need not be one of words', () => {
    for (let length = 0; length <= 20; length++) {
      for (let offset = 0; offset < 8; offset++) {
        const bytes = new Uint8Array(new ArrayBuffer(offset + length), offset).fill(0x61);
        expect(new StringRuns(bytes).endOf(0)).toBe(length);
        if (length === 0) continue;
        bytes[length - 1] = 0x22;
        expect(new StringRuns(bytes).endOf(0)).toBe(length - 1);
      }
    }
  });

  it('serves texts of several alignments in turn, each with its own object', () => {
    const bytes = Uint8Array.from(Buffer.from(`${'x'.repeat(50)}"`));
    const all = Array.from({ length: 8 }, (_, offset) => new StringRuns(atOffset(bytes, offset)));
    for (let round = 0; round < 3; round++) for (const runs of all) expect(runs.endOf(round)).toBe(50);
  });
});
