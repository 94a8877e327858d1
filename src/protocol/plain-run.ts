/**
 * The fast walk through the inside of a JSON string: most bytes of large messages are passed by here, sixteen at a time.
 */

/** 1 for the bytes that end a run: the quote, the backslash, and control characters, which JSON forbids in strings. */
export const endsRun = new Uint8Array(256);
endsRun.fill(1, 0, 0x20);
endsRun[0x22] = 1;
endsRun[0x5c] = 1;

/** Shorter runs than this are not worth the set-up of reading by words. */
export const shortRun = 32;

/** Finds the ends of plain runs in one text. */
export class PlainRuns {
  readonly #text: Uint8Array;
  #words: Int32Array | undefined;
  /** The place in the text of the first byte of `#words`. */
  #wordsAt = 0;

  constructor(text: Uint8Array) {
    this.#text = text;
  }

  /** The place of the first byte at or after `at` that is a quote, a backslash or a control character, or the text's end. */
  endOf(at: number): number {
    const text = this.#text;
    const nearEnd = Math.min(at + shortRun, text.length);
    let i = at;
    while (i < nearEnd) {
      if (endsRun[text[i] as number] === 1) return i;
      i += 1;
    }
    return i === text.length ? i : this.#endByWords(i);
  }

  #endByWords(from: number): number {
    const text = this.#text;
    this.#words ??= this.#view();
    const words = this.#words;
    let i = from;
    while (i < text.length && (i - this.#wordsAt) & 3) {
      if (endsRun[text[i] as number] === 1) return i;
      i += 1;
    }
    if (i === text.length) return i;
    i = this.#wordsAt + firstHit(words, (i - this.#wordsAt) >> 2) * 4;
    while (i < text.length && endsRun[text[i] as number] === 0) i += 1;
    return i;
  }

  /** The part of the text that lies on word boundaries. The order of bytes in a word does not matter. */
  #view(): Int32Array {
    const { buffer, byteOffset, length } = this.#text;
    this.#wordsAt = -byteOffset & 3;
    return new Int32Array(buffer, byteOffset + this.#wordsAt, Math.max(0, (length - this.#wordsAt) >> 2));
  }
}

const topBits = 0x80808080 | 0;

/**
 * The index of a word at or before the first one that holds an end of the run, by less than four words; the number of
 * words if there is none.
 *
 * For each byte of a word, the top bit of `marks` is set if the byte is zero after taking the quote or the backslash out
 * (the first two terms) or below 0x20 (the third), and if its own top bit is not set; see "hasless" in Anderson, Bit
 * Twiddling Hacks. Bytes above the first hit may be marked wrongly, so the caller looks at the bytes themselves.
 */
function firstHit(words: Int32Array, from: number): number {
  const last = words.length - 4;
  let at = from;
  for (; at <= last; at += 4) {
    const a = words[at] as number;
    const b = words[at + 1] as number;
    const c = words[at + 2] as number;
    const d = words[at + 3] as number;
    if (((marks(a) | marks(b) | marks(c) | marks(d)) & topBits) !== 0) return at;
  }
  while (at < words.length && (marks(words[at] as number) & topBits) === 0) at += 1;
  return at;
}

const marks = (word: number): number =>
  (((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101) | (word - 0x20202020)) & ~word;
