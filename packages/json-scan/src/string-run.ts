/**
 * Finds the end of the inside of a JSON string, where most bytes of large messages are. It reads words of four bytes. In a
 * long run Node.js searches for the end, and only control characters are left to check here.
 */

/** 1 for the bytes that end a run: the quote, the backslash, and control characters, which JSON forbids in strings. */
export const endsStringRun = new Uint8Array(256);
endsStringRun.fill(1, 0, 0x20);
endsStringRun[0x22] = 1;
endsStringRun[0x5c] = 1;

/** Shorter runs are not worth the set-up of reading by words. */
export const shortRun = 32;

/** Most runs end within this many words. */
const shortRunWords = 16;

/**
 * A run of this many words is long. Node.js searches it faster, but the call costs as much as reading about this many
 * words.
 */
const longRunWords = 512;

/** Words are read from their lowest byte on. Elsewhere all bytes are read one by one. */
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Finds the ends of plain runs in one text. */
export class StringRuns {
  readonly #text: Buffer;
  readonly #words: Int32Array;
  /** How many bytes of the first word are before the text. */
  readonly #before: number;
  /**
   * The next quote and backslash at or after the last searched position, or the end of the text. So each byte is
   * searched once for each.
   */
  #nextQuote = -1;
  #nextBackslash = -1;

  constructor(text: Uint8Array) {
    const { buffer, byteOffset, length } = text;
    this.#text = Buffer.isBuffer(text) ? text : Buffer.from(buffer, byteOffset, length);
    this.#before = byteOffset & 3;
    // The last word may have bytes behind the text, but none behind its memory.
    const count = Math.min((this.#before + length + 3) >> 2, (buffer.byteLength - byteOffset + this.#before) >> 2);
    this.#words = new Int32Array(buffer, byteOffset - this.#before, isLittleEndian ? count : 0);
  }

  /**
   * The position of the first quote, backslash or control character at or after `at`, or the end of the text. For one
   * text, `at` must never decrease.
   */
  endOf(at: number): number {
    const words = this.#words;
    const first = at + this.#before;
    let word = first >> 2;
    if (word >= words.length) return this.#endByBytes(at);
    // The bytes before `at` become ones, which end no run.
    let ends = endsIn((words[word] as number) | ((1 << ((first & 3) << 3)) - 1));
    if (ends === 0) {
      word = this.#wordWithEnd(word + 1);
      if (word === words.length) return this.#endByBytes(word * 4 - this.#before);
      ends = endsIn(words[word] as number);
    }
    const end = word * 4 + ((31 - Math.clz32(ends & -ends)) >> 3) - this.#before;
    return Math.min(end, this.#text.length);
  }

  /** The index of the first word with an end of the run, or the number of words. */
  #wordWithEnd(from: number): number {
    const words = this.#words;
    const close = Math.min(from + shortRunWords, words.length);
    for (let at = from; at < close; at += 1) if (endsIn(words[at] as number) !== 0) return at;
    const near = Math.min(from + longRunWords, words.length);
    const word = firstWithEnd(words, close, near);
    if (word < near || near === words.length) return word;
    const special = (this.#nextSpecial(near * 4 - this.#before) + this.#before) >> 2;
    return firstWithEnd(words, firstControl(words, near, special), words.length);
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

  /** As `endOf`, for bytes that are in no whole word. */
  #endByBytes(from: number): number {
    const text = this.#text;
    let at = from;
    while (at < text.length && endsStringRun[text[at] as number] === 0) at += 1;
    return Math.min(at, text.length);
  }
}

const topBits = 0x80808080 | 0;

/**
 * The top bit of each byte that ends a run; 0 for none. Bytes above the first end may be marked wrongly.
 *
 * A byte without its own top bit is marked in two cases. Either it is zero after an XOR with the quote or the backslash
 * (the first two terms), or it is below 0x20 (the third). See "hasless" in Anderson, Bit Twiddling Hacks.
 */
const endsIn = (word: number): number =>
  (((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101) | (word - 0x20202020)) & ~word & topBits;

/** The index of the first word in which a run ends, or `end`. */
function firstWithEnd(words: Int32Array, from: number, end: number): number {
  let at = from;
  for (; at <= end - 4; at += 4) {
    const a = endsIn(words[at] as number) | endsIn(words[at + 1] as number);
    const b = endsIn(words[at + 2] as number) | endsIn(words[at + 3] as number);
    if ((a | b) !== 0) break;
  }
  while (at < end && endsIn(words[at] as number) === 0) at += 1;
  return at;
}

/** The index of a word at most seven words before the first control character, or at most seven words before `end`. */
function firstControl(words: Int32Array, from: number, end: number): number {
  let at = from;
  for (; at <= end - 8; at += 8) {
    const a = controls(words[at] as number) | controls(words[at + 1] as number);
    const b = controls(words[at + 2] as number) | controls(words[at + 3] as number);
    const c = controls(words[at + 4] as number) | controls(words[at + 5] as number);
    const d = controls(words[at + 6] as number) | controls(words[at + 7] as number);
    if (((a | b | c | d) & topBits) !== 0) break;
  }
  return at;
}

const controls = (word: number): number => (word - 0x20202020) & ~word;
