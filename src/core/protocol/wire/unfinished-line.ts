import { JoinedChunks } from './join-chunks.ts';

/** A fragment of at least this size is kept uncopied if it is most of the memory that it keeps alive. */
const minKeptBytes = 4096;

const emptyBuffer = Buffer.alloc(0);

/**
 * The bytes of a line whose end has not come: first large fragments, then small ones copied together. Large fragments
 * wait uncopied until they are a megabyte, so that no turn copies a large line (`JoinedChunks`). Small fragments are copied, so that a peer that writes single
 * bytes does not cost an object and a chunk for each. Their buffer doubles, so that n of them cost linear time.
 */
export class UnfinishedLine {
  readonly #maxBytes: number;
  readonly #fragments: JoinedChunks;
  #small = emptyBuffer;
  #smallBytes = 0;
  #bytes = 0;

  /** @param maxBytes the caller never appends more than this */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#fragments = new JoinedChunks(maxBytes);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A copy of the first bytes. */
  first(bytes: number): Buffer {
    const fragment = this.#fragments.first ?? this.#small.subarray(0, this.#smallBytes);
    return Buffer.from(fragment.subarray(0, bytes));
  }

  append(part: Buffer): void {
    this.#bytes += part.length;
    if (part.length >= minKeptBytes && part.length * 2 >= part.buffer.byteLength) {
      this.#sealSmall();
      this.#fragments.add(part);
      return;
    }
    const needed = this.#smallBytes + part.length;
    if (needed > this.#small.length) {
      const larger = Buffer.allocUnsafe(Math.min(Math.max(needed, 2 * this.#small.length), this.#maxBytes));
      this.#small.copy(larger, 0, 0, this.#smallBytes);
      this.#small = larger;
    }
    part.copy(this.#small, this.#smallBytes);
    this.#smallBytes = needed;
  }

  /** Returns the line with its last part, and begins a new one. */
  complete(part: Buffer): Buffer {
    this.#sealSmall();
    this.#fragments.add(part);
    this.#bytes += part.length;
    return this.take();
  }

  /** Returns what there is of the line, and begins a new one. */
  take(): Buffer {
    this.#sealSmall();
    this.#bytes = 0;
    return this.#fragments.take();
  }

  #sealSmall(): void {
    if (this.#smallBytes > 0) this.#fragments.add(this.#small.subarray(0, this.#smallBytes));
    this.#small = emptyBuffer;
    this.#smallBytes = 0;
  }
}
