import { walkPages } from '../protocol/list-page.ts';
import { BoundedMap, type ByteBudget } from '../util/bounded-map.ts';

/** A page that was read: the names on it, and the cursor of the next page. */
export interface ReadItems {
  readonly names: Iterable<string>;
  readonly nextCursor: string | undefined;
}

/**
 * What is known of a server's list as one client gets it: a fact about each item, by name. It is learned from the pages
 * that pass. A call that needs to know more has the whole list read.
 */
export class KnownItems<Fact> {
  /** A server that lists ever new items must not fill the memory (P8): whoever learns keeps within the limits. */
  readonly facts: BoundedMap<string, Fact>;
  #readAt = Number.NEGATIVE_INFINITY;
  /** Incremented whenever the knowledge becomes void: a list that was requested before that is not complete. */
  #generation = 0;
  #reading: Promise<boolean> | undefined;

  constructor(max: number, budget?: ByteBudget<string, Fact>) {
    this.facts = new BoundedMap(max, budget);
  }

  /** True if the whole list was read in this time, and has not changed since. */
  wasReadWithin(ms: number): boolean {
    return performance.now() - this.#readAt < ms;
  }

  /** Drops the knowledge: the list has changed, or the server is another one. */
  forget(): void {
    this.facts.clear();
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#generation += 1;
  }

  /**
   * Reads the whole list, once for all calls that wait for it. Resolves to false if the server does not give it.
   * @param readPage learns from a page of the server; `unread` if it gives none
   */
  read(readPage: (cursor: string | undefined) => Promise<ReadItems | 'unread'>): Promise<boolean> {
    this.#reading ??= this.#readAll(readPage).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readAll(readPage: (cursor: string | undefined) => Promise<ReadItems | 'unread'>): Promise<boolean> {
    const generation = this.#generation;
    // Names of earlier lists that no page has.
    const gone = new Set(this.facts.keys());
    const end = await walkPages(async (cursor) => {
      const page = await readPage(cursor);
      if (page !== 'unread') for (const name of page.names) gone.delete(name);
      return page;
    });
    if (end === 'unread') return false;
    if (end !== 'many') for (const name of gone) this.facts.delete(name);
    if (generation === this.#generation) this.#readAt = performance.now();
    return true;
  }
}

/** For so many clients, the latest ones, lists are remembered. For others the server is asked again (P8). */
const maxClients = 100;

/**
 * What is known for each client of a server that distinguishes clients. A list may be for one client alone (2026-07-28,
 * server/utilities/caching, `cacheScope`). So no other client is judged by it, or learns of it (P11).
 */
export class KnownByClient<Client, Known extends { forget(): void }> extends BoundedMap<string, Known> {
  readonly #keyOf: (client: Client) => string;
  readonly #create: () => Known;

  /** @param keyOf the key of a client: clients with the same key get the same list */
  constructor(keyOf: (client: Client) => string, create: () => Known) {
    super(maxClients);
    this.#keyOf = keyOf;
    this.#create = create;
  }

  /** What is known for a client; undefined if it was never asked for. */
  known(client: Client): Known | undefined {
    return this.get(this.#keyOf(client));
  }

  /** What is known for a client. */
  of(client: Client): Known {
    const key = this.#keyOf(client);
    const known = this.get(key);
    if (known !== undefined) return known;
    const created = this.#create();
    this.set(key, created);
    return created;
  }

  /** Drops what is known for each. */
  forget(): void {
    for (const known of this.values()) known.forget();
  }
}
