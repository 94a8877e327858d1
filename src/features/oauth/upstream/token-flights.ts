/** Who asks about a token. */
export interface Asker {
  /** True if the token was valid a moment ago. */
  readonly isKnown: boolean;
  /** The address of the connection; undefined if it is not known. */
  readonly address: string | undefined;
}

/**
 * The questions about tokens that run at once (P8). Anybody can cause one with an invented token, and an issuer may
 * answer such a question late. So tokens that were valid a moment ago have a quarter of the room to themselves, and one
 * address has at most a quarter for other tokens: strangers lock nobody out.
 */
export class TokenFlights<V> {
  readonly #max: number;
  readonly #running = new Map<string, Promise<V>>();
  #unknown = 0;
  readonly #unknownByAddress = new Map<string, number>();

  /** @param max how many questions run at once */
  constructor(max: number) {
    this.#max = max;
  }

  /** The running question about a token. */
  get(key: string): Promise<V> | undefined {
    return this.#running.get(key);
  }

  /** Asks about a token. Undefined if there is no room for the asker. `ask` never rejects. */
  start(key: string, { isKnown, address = '' }: Asker, ask: () => Promise<V>): Promise<V> | undefined {
    if (this.#running.size >= this.#max) return undefined;
    const ofAddress = this.#unknownByAddress.get(address) ?? 0;
    if (!isKnown && (this.#unknown >= (this.#max * 3) / 4 || ofAddress >= this.#max / 4)) return undefined;
    if (!isKnown) this.#count(address, 1);
    const flight = ask().finally(() => {
      this.#running.delete(key);
      if (!isKnown) this.#count(address, -1);
    });
    this.#running.set(key, flight);
    return flight;
  }

  #count(address: string, change: number): void {
    this.#unknown += change;
    const count = (this.#unknownByAddress.get(address) ?? 0) + change;
    if (count === 0) this.#unknownByAddress.delete(address);
    else this.#unknownByAddress.set(address, count);
  }
}
