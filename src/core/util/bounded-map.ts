import { SparseMap } from './sparse-map.ts';

/** The bytes that the entries of a table may take (P8). The keys and values come from a peer. */
export interface ByteBudget<K, V> {
  /** All entries together. */
  readonly maxBytes: number;
  /** A larger entry is never kept. */
  readonly maxEntryBytes: number;
  /** The bytes of an entry, the same for as long as the entry is kept. */
  bytesOf(key: K, value: V): number;
}

/**
 * A table with a limited number of entries, and of bytes, for what a peer can cause without end (P8). A new key drops
 * the oldest entries of a full table. Setting a known key again makes its entry the newest.
 */
export class BoundedMap<K, V> extends SparseMap<K, V> {
  readonly #max: number;
  readonly #budget: ByteBudget<K, V> | undefined;
  #bytes = 0;
  #newest: K | undefined;

  /** @param budget the limits for the bytes; undefined if the caller limits the size of each entry */
  constructor(max: number, budget?: ByteBudget<K, V>) {
    super();
    this.#max = max;
    this.#budget = budget;
  }

  /** The bytes of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True if `set` keeps this entry, and drops no other one for it. */
  hasRoomFor(key: K, value: V): boolean {
    const known = this.get(key);
    const bytes = this.#bytes - (known === undefined ? 0 : this.#bytesOf(key, known)) + this.#bytesOf(key, value);
    return this.#fits(key, value) && (known !== undefined || this.size < this.#max) && bytes <= this.#maxBytes;
  }

  /** Keeps an entry. One that is too large is not kept, and the entry that it would replace is dropped. */
  override set(key: K, value: V): this {
    if (value !== undefined && key === this.#newest && this.get(key) === value) return this; // nothing would change
    if (!this.#fits(key, value)) {
      this.delete(key);
      return this;
    }
    this.makeRoomFor(key);
    const bytes = this.#bytesOf(key, value);
    while (this.size > 0 && this.#bytes + bytes > this.#maxBytes) this.#dropOldest();
    this.#bytes += bytes;
    this.#newest = key;
    return super.set(key, value);
  }

  override delete(key: K): boolean {
    if (this.#budget !== undefined) {
      const known = this.get(key);
      if (known !== undefined) this.#bytes -= this.#bytesOf(key, known);
    }
    return super.delete(key);
  }

  override clear(): void {
    this.#bytes = 0;
    super.clear();
  }

  /**
   * Removes the entries that setting this key replaces: its own one, and the oldest one of a full map.
   * @returns the dropped entry of another key; undefined if there is none
   */
  makeRoomFor(key: K): readonly [K, V] | undefined {
    if (this.delete(key) || this.size < this.#max) return undefined;
    return this.#dropOldest();
  }

  #dropOldest(): readonly [K, V] | undefined {
    const [oldest] = this;
    if (oldest !== undefined) this.delete(oldest[0]);
    return oldest;
  }

  get #maxBytes(): number {
    return this.#budget?.maxBytes ?? Number.POSITIVE_INFINITY;
  }

  #fits(key: K, value: V): boolean {
    return this.#bytesOf(key, value) <= (this.#budget?.maxEntryBytes ?? Number.POSITIVE_INFINITY);
  }

  #bytesOf(key: K, value: V): number {
    return this.#budget?.bytesOf(key, value) ?? 0;
  }
}

/** About what an entry with an empty text takes. Without it, a budget would allow any number of short texts. */
export const emptyEntryBytes = 64;

/**
 * The budget of a table whose keys are texts of a peer, and whose values are small.
 * @param maxTextBytes a longer text is not kept
 */
export const budgetOfTexts = (maxBytes: number, maxTextBytes: number): ByteBudget<string, unknown> => ({
  maxBytes,
  maxEntryBytes: maxTextBytes + emptyEntryBytes,
  bytesOf: (text) => Buffer.byteLength(text) + emptyEntryBytes,
});
