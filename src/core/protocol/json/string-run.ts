/**
 * Finds the end of the inside of a JSON string, where most bytes of large messages are. It first compares words. In a
 * long run Node.js searches for the end, and only control characters are left to check here.
 */

/** 1 for the bytes that end a run: the quote, the backslash, and control characters, which JSON forbids in strings. */
export const endsStringRun = new Uint8Array(256);
endsStringRun.fill(1, 0, 0x20);
endsStringRun[0x22] = 1;
endsStringRun[0x5c] = 1;

/** Shorter runs are not worth the set-up of reading by words. */
export const shortRun = 32;

/**
 * A run of this many words is long. Node.js searches it faster, but the call costs as much as reading about this many
 * words.
 */
const longRunWords = 512;

/** Finds the ends of plain runs in one text. */
export class StringRuns {
  readonly #text: Buffer;
  /**
   * The next quote and backslash at or after the last searched position, or the end of the text. So each byte is
   * searched once for each.
   */
  #nextQuote = -1;
  #nextBackslash = -1;
  #words: Int32Array | undefined;
  /** The position in the text of the first byte of `#words`. */
  #wordsStart = 0;

  constructor(text: Uint8Array) {
    this.#text = Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  }

  /**
   * The position of the first quote, backslash or control character at or after `at`, or the end of the text. For one
   * text, `at` must never decrease.
   */
  endOf(at: number): number {
    const text = this.#text;
    const nearEnd = Math.min(at + shortRun, text.length);
    let i = at;
    while (i < nearEnd) {
      if (endsStringRun[text[i] as number] === 1) return i;
      i += 1;
    }
    return i === text.length ? i : this.endOfFar(i);
  }

  /** Does the same as `endOf` for a run that is already some bytes long. */
  endOfFar(from: number): number {
    const text = this.#text;
    this.#words ??= this.#viewWords();
    const words = this.#words;
    let i = from;
    while (i < text.length && (i - this.#wordsStart) & 3) {
      if (endsStringRun[text[i] as number] === 1) return i;
      i += 1;
    }
    if (i === text.length) return i;
    const start = (i - this.#wordsStart) >> 2;
    const near = Math.min(start + longRunWords, words.length);
    let word = firstHit(words, start, near);
    if (word === near) {
      const end = this.#nextSpecial(this.#wordsStart + near * 4);
      word = firstControl(words, near, (end - this.#wordsStart) >> 2);
    }
    i = this.#wordsStart + word * 4;
    while (i < text.length && endsStringRun[text[i] as number] === 0) i += 1;
    return i;
  }

  /** The position of the first quote or backslash at or after `at`, or the end of the text. */
  #nextSpecial(at: number): number {
    const text = this.#text;
    if (this.#nextQuote < at) {
      const found = text.indexOf(0x22, at);
      this.#nextQuote = found < 0 ? text.length : found;
    }
    if (this.#nextBackslash < at) {
      const found = text.indexOf(0x5c, at);
      this.#nextBackslash = found < 0 ? text.length : found;
    }
    return Math.min(this.#nextQuote, this.#nextBackslash);
  }

  /** The part of the text that lies on word boundaries. The order of bytes in a word does not matter. */
  #viewWords(): Int32Array {
    const { buffer, byteOffset, length } = this.#text;
    this.#wordsStart = -byteOffset & 3;
    return new Int32Array(buffer, byteOffset + this.#wordsStart, Math.max(0, (length - this.#wordsStart) >> 2));
  }
}

const topBits = 0x80808080 | 0;

/**
 * The index of a word at most three words before the first one that contains an end of the run; `end` if there is none
 * before it.
 *
 * The top bit of each byte of `marks` is set in two cases, if the byte's own top bit is not set. Either the byte is
 * zero after an XOR with the quote or the backslash (the first two terms), or it is below 0x20 (the third). See
 * "hasless" in Anderson, Bit Twiddling Hacks. Bytes above the first hit may be marked wrongly, so the caller checks the
 * bytes themselves.
 */
function firstHit(words: Int32Array, from: number, end: number): number {
  let at = from;
  for (; at <= end - 4; at += 4) {
    const a = words[at] as number;
    const b = words[at + 1] as number;
    const c = words[at + 2] as number;
    const d = words[at + 3] as number;
    if (((marks(a) | marks(b) | marks(c) | marks(d)) & topBits) !== 0) return at;
  }
  while (at < end && (marks(words[at] as number) & topBits) === 0) at += 1;
  return at;
}

const marks = (word: number): number =>
  (((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101) | (word - 0x20202020)) & ~word;

/** Like `firstHit`, for control characters only: the index is at most seven words before the hit. */
function firstControl(words: Int32Array, from: number, end: number): number {
  let at = from;
  for (; at <= end - 8; at += 8) {
    const a = controls(words[at] as number) | controls(words[at + 1] as number);
    const b = controls(words[at + 2] as number) | controls(words[at + 3] as number);
    const c = controls(words[at + 4] as number) | controls(words[at + 5] as number);
    const d = controls(words[at + 6] as number) | controls(words[at + 7] as number);
    if (((a | b | c | d) & topBits) !== 0) return at;
  }
  return at;
}

const controls = (word: number): number => (word - 0x20202020) & ~word;
