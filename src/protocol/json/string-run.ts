/**
 * The fast walk through the inside of a JSON string, where most bytes of large messages are: first by words, and what is long is
 * searched for its end by Node.js, which leaves only control characters to be looked for here.
 */

/** 1 for the bytes that end a run: the quote, the backslash, and control characters, which JSON forbids in strings. */
export const endsStringRun = new Uint8Array(256);
endsStringRun.fill(1, 0, 0x20);
endsStringRun[0x22] = 1;
endsStringRun[0x5c] = 1;

/** Shorter runs than this are not worth the set-up of reading by words. */
export const shortRun = 32;

/** A run of so many words is long: Node.js searches it faster, but to ask it costs as much as a walk of about this length. */
const longRunWords = 512;

/** Finds the ends of plain runs in one text. */
export class StringRuns {
  readonly #text: Buffer;
  /** The next ones at or after where they were asked for last, or the text's end: each byte is searched once for each. */
  #quoteAt = -1;
  #backslashAt = -1;
  #words: Int32Array | undefined;
  /** The place in the text of the first byte of `#words`. */
  #wordsAt = 0;

  constructor(text: Uint8Array) {
    this.#text = Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  }

  /**
   * The place of the first byte at or after `at` that is a quote, a backslash or a control character, or the text's end. Of one
   * text `at` never goes back.
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

  /** The same for a run that has gone on for some bytes. */
  endOfFar(from: number): number {
    const text = this.#text;
    this.#words ??= this.#view();
    const words = this.#words;
    let i = from;
    while (i < text.length && (i - this.#wordsAt) & 3) {
      if (endsStringRun[text[i] as number] === 1) return i;
      i += 1;
    }
    if (i === text.length) return i;
    const start = (i - this.#wordsAt) >> 2;
    const near = Math.min(start + longRunWords, words.length);
    let word = firstHit(words, start, near);
    if (word === near) {
      const end = this.#nextSpecial(this.#wordsAt + near * 4);
      word = firstControl(words, near, (end - this.#wordsAt) >> 2);
    }
    i = this.#wordsAt + word * 4;
    while (i < text.length && endsStringRun[text[i] as number] === 0) i += 1;
    return i;
  }

  /** The place of the first quote or backslash at or after `at`, or the text's end. */
  #nextSpecial(at: number): number {
    const text = this.#text;
    if (this.#quoteAt < at) {
      const found = text.indexOf(0x22, at);
      this.#quoteAt = found < 0 ? text.length : found;
    }
    if (this.#backslashAt < at) {
      const found = text.indexOf(0x5c, at);
      this.#backslashAt = found < 0 ? text.length : found;
    }
    return Math.min(this.#quoteAt, this.#backslashAt);
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
 * The index of a word at or before the first one that holds an end of the run, by less than four words; `end` if there is none
 * before it.
 *
 * For each byte of a word, the top bit of `marks` is set if the byte is zero after taking the quote or the backslash out
 * (the first two terms) or below 0x20 (the third), and if its own top bit is not set; see "hasless" in Anderson, Bit
 * Twiddling Hacks. Bytes above the first hit may be marked wrongly, so the caller looks at the bytes themselves.
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

/** As `firstHit`, by less than eight words, for control characters alone. */
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
