/**
 * The fast walk through the inside of a JSON string: most bytes of large messages are passed by here, four at a time.
 */

/** 1 for the bytes that end a run: the quote, the backslash, and control characters, which JSON forbids in strings. */
const ends = new Uint8Array(256);
ends.fill(1, 0, 0x20);
ends[0x22] = 1;
ends[0x5c] = 1;

/** Shorter runs than this are not worth the set-up of reading by words. */
const shortRun = 24;

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
      if (ends[text[i] as number] === 1) return i;
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
      if (ends[text[i] as number] === 1) return i;
      i += 1;
    }
    if (i === text.length) return i;
    let word = (i - this.#wordsAt) >> 2;
    while (word < words.length) {
      const w = words[word] as number;
      const quote = w ^ 0x22222222;
      const backslash = w ^ 0x5c5c5c5c;
      // For each byte, its top bit is set if it is zero (the first two) or below 0x20 (the third); see "hasless" in
      // Anderson, Bit Twiddling Hacks. Bytes above the first hit may be marked wrongly, so the hit is looked up below.
      const hits = ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash) | ((w - 0x20202020) & ~w);
      if ((hits & 0x80808080) !== 0) break;
      word += 1;
    }
    i = this.#wordsAt + word * 4;
    while (i < text.length && ends[text[i] as number] === 0) i += 1;
    return i;
  }

  /** The part of the text that lies on word boundaries. The order of bytes in a word does not matter. */
  #view(): Int32Array {
    const { buffer, byteOffset, length } = this.#text;
    this.#wordsAt = -byteOffset & 3;
    return new Int32Array(buffer, byteOffset + this.#wordsAt, Math.max(0, (length - this.#wordsAt) >> 2));
  }
}
