const firstBytes = 256;
const noBytes: Buffer = Buffer.alloc(0);

/**
 * Keeps the last `maxBytes` of a stream in one buffer that grows as needed: most streams bring nothing, or one line at
 * their start.
 */
export class LineTail {
  readonly #maxBytes: number;
  #kept = noBytes;
  #keptBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    const added = chunk.subarray(-this.#maxBytes);
    const needed = Math.min(this.#maxBytes, this.#keptBytes + added.length);
    if (needed > this.#kept.length) this.#grow(needed);
    const remainingBytes = needed - added.length;
    this.#kept.copyWithin(0, this.#keptBytes - remainingBytes, this.#keptBytes);
    added.copy(this.#kept, remainingBytes);
    this.#keptBytes = needed;
  }

  /** Returns a view of the last bytes, valid until the next `push`. */
  read(): Buffer {
    return this.#kept.subarray(0, this.#keptBytes);
  }

  #grow(needed: number): void {
    // An own allocation instead of a slice of the shared pool: one slice would keep the whole pool alive.
    const bytes = Math.min(this.#maxBytes, Math.max(needed, 2 * this.#kept.length, firstBytes));
    const larger = Buffer.allocUnsafeSlow(bytes);
    this.#kept.copy(larger, 0, 0, this.#keptBytes);
    this.#kept = larger;
  }
}
