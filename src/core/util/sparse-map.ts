const noEntries = new Map<never, never>();

/**
 * A map that allocates its table with the first entry. Each of thousands of idle sessions has a dozen maps that stay
 * empty.
 */
export class SparseMap<K, V> implements ReadonlyMap<K, V> {
  #map: Map<K, V> | undefined;

  constructor(entries?: Iterable<readonly [K, V]>) {
    if (entries !== undefined) for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#map?.size ?? 0;
  }

  has(key: K): boolean {
    return this.#map?.has(key) ?? false;
  }

  get(key: K): V | undefined {
    return this.#map?.get(key);
  }

  set(key: K, value: V): this {
    this.#map ??= new Map();
    this.#map.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    return this.#map?.delete(key) ?? false;
  }

  clear(): void {
    this.#map = undefined;
  }

  keys(): MapIterator<K> {
    return this.#readable.keys();
  }

  values(): MapIterator<V> {
    return this.#readable.values();
  }

  entries(): MapIterator<[K, V]> {
    return this.#readable.entries();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#readable.entries();
  }

  forEach(act: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    this.#readable.forEach(act);
  }

  get #readable(): ReadonlyMap<K, V> {
    return this.#map ?? (noEntries as ReadonlyMap<unknown, unknown> as ReadonlyMap<K, V>);
  }
}
