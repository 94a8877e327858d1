import { SparseMap } from './sparse-map.ts';

/**
 * A map with a limited number of entries, for what a peer can cause without end (P8). A new key drops the oldest entry
 * of a full map. Setting a known key again makes its entry the newest.
 */
export class BoundedMap<K, V> extends SparseMap<K, V> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: K, value: V): this {
    this.makeRoomFor(key);
    return super.set(key, value);
  }

  /**
   * Removes the entries that setting this key replaces: its own one, and the oldest one of a full map.
   * @returns the dropped entry of another key; undefined if there is none
   */
  makeRoomFor(key: K): readonly [K, V] | undefined {
    if (this.delete(key) || this.size < this.#max) return undefined;
    const [oldest] = this;
    if (oldest !== undefined) this.delete(oldest[0]);
    return oldest;
  }
}
