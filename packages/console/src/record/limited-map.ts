/** A table with a limited number of entries (P8). Setting a key makes its entry the newest, and drops the oldest of a full table. */
export class LimitedMap<K, V> extends Map<K, V> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: K, value: V): this {
    const isKnown = this.delete(key);
    const [oldest] = this.keys();
    if (!isKnown && this.size >= this.#max && oldest !== undefined) this.delete(oldest);
    return super.set(key, value);
  }
}
