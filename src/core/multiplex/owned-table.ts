import { BoundedMap, type ByteBudget } from '../util/bounded-map.ts';

/** An entry, and the one peer that it belongs to. */
interface Owned<O, V> {
  readonly owner: O;
  readonly value: V;
}

/**
 * What several peers have in a place that they share: requests, tokens, tasks. Every look-up for a peer names the
 * asker, and what belongs to another peer does not exist for the asker (P11). A key keeps its owner until the entry
 * ends: nobody takes over what another peer has.
 */
export class OwnedTable<O, K, V = true> {
  readonly #entries: BoundedMap<K, Owned<O, V>>;

  /** Limits as in `BoundedMap`: a new key drops the oldest entry of a full table. */
  constructor(max: number, budget?: ByteBudget<K, unknown>) {
    this.#entries = new BoundedMap<K, Owned<O, V>>(max, budget);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Gives a key to an owner. Returns false if it belongs to another one. */
  claim(owner: O, key: K, value: V): boolean {
    const known = this.#entries.get(key);
    if (known !== undefined && known.owner !== owner) return false;
    this.#entries.set(key, { owner, value });
    return true;
  }

  /** What the asker has under a key; undefined also if another peer has the key. */
  get(asker: O, key: K): V | undefined {
    const found = this.#entries.get(key);
    return found?.owner === asker ? found.value : undefined;
  }

  has(asker: O, key: K): boolean {
    return this.get(asker, key) !== undefined;
  }

  /** As `get`, and removes the entry. */
  take(asker: O, key: K): V | undefined {
    const found = this.get(asker, key);
    if (found !== undefined) this.#entries.delete(key);
    return found;
  }

  /** The owner of a key, to bring something to it. What a peer may do is decided by `get`, never by this. */
  ownerOf(key: K): O | undefined {
    return this.#entries.get(key)?.owner;
  }

  /** True if the key belongs to nobody, or to the asker. */
  isFreeFor(asker: O, key: K): boolean {
    const owner = this.ownerOf(key);
    return owner === undefined || owner === asker;
  }

  /** The keys of an owner. */
  keysOf(owner: O): K[] {
    return [...this.#entries].flatMap(([key, entry]) => (entry.owner === owner ? [key] : []));
  }

  /** Removes all entries of an owner. */
  release(owner: O): void {
    for (const key of this.keysOf(owner)) this.#entries.delete(key);
  }
}
