import { detachBytes } from '../../util/detached-bytes.ts';

/** The most texts of one run (P8): about as many as a read of a pipe has. It bounds the memory of the list of ends. */
export const maxTextsInRun = 1024;

/**
 * Several texts that lie behind each other in one buffer, with one byte (a line feed) between them. A server that
 * reports progress writes hundreds of short lines at once. As one unit they need one object instead of several for each.
 */
export class TextRun {
  /** The buffer of the texts. The first text of the run need not begin at its start. */
  readonly memory: Buffer;
  readonly count: number;
  /** The end of each text in `memory`. Parts of a run share this list. */
  readonly #ends: Uint32Array;
  /** The index in `#ends` of the run's first text. */
  readonly #first: number;

  /**
   * @param memory begins with the text that the list of ends begins with
   * @param ends the end of each text, without the byte behind the text
   */
  constructor(memory: Buffer, ends: Uint32Array, first = 0, count: number = ends.length) {
    this.memory = memory;
    this.count = count;
    this.#ends = ends;
    this.#first = first;
  }

  /** The bytes of all texts, without the bytes between them. */
  get bytes(): number {
    return this.endOf(this.count - 1) - this.startOf(0) - (this.count - 1);
  }

  /** The position of a text in `memory`. */
  startOf(index: number): number {
    const at = this.#first + index;
    return at === 0 ? 0 : (this.#ends[at - 1] as number) + 1;
  }

  /** The position behind a text in `memory`. */
  endOf(index: number): number {
    return this.#ends[this.#first + index] as number;
  }

  /** A text. It shares the memory of the run. */
  text(index: number): Buffer {
    return this.memory.subarray(this.startOf(index), this.endOf(index));
  }

  texts(): Buffer[] {
    return Array.from({ length: this.count }, (_, index) => this.text(index));
  }

  /** The bytes of the longest text. */
  get longest(): number {
    let longest = 0;
    for (let index = 0; index < this.count; index += 1)
      longest = Math.max(longest, this.endOf(index) - this.startOf(index));
    return longest;
  }

  /** The texts of a range, which share the memory of the run. */
  slice(from: number, to = this.count): TextRun {
    return new TextRun(this.memory, this.#ends, this.#first + from, to - from);
  }

  /** The smallest number of the first texts that have at least this many bytes, or the number of all texts. */
  countOfBytes(bytes: number): number {
    const start = this.startOf(0);
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (middle > 0 && this.endOf(middle - 1) - start - (middle - 1) >= bytes) high = middle;
      else if (middle === 0 && bytes <= 0) high = 0;
      else low = middle + 1;
    }
    return low;
  }

  /** How many of the first texts have at most this many bytes together. */
  countWithin(bytes: number): number {
    return bytes >= this.bytes ? this.count : Math.max(0, this.countOfBytes(Math.floor(bytes) + 1) - 1);
  }

  /** The same texts in memory that is safe to keep; see `detachBytes`. */
  detached(): TextRun {
    const start = this.startOf(0);
    const used = this.memory.subarray(start, this.endOf(this.count - 1));
    const kept = detachBytes(used);
    if (kept === used) return this;
    const ends = this.#ends.slice(this.#first, this.#first + this.count);
    for (let index = 0; index < ends.length; index += 1) ends[index] = (ends[index] as number) - start;
    return new TextRun(kept, ends);
  }
}
