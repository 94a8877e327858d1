/**
 * A counter or gauge. Callers keep a reference and add to `value`, so that a call costs one addition. A counter of a
 * library would look up its labels each time.
 */
export class Tally {
  value = 0;

  add(amount: number): void {
    this.value += amount;
  }
}

/** A histogram: how many values fell below each bound, and their sum. */
export class Distribution {
  /** One count for each bound, and a last one for values above all bounds. The counts are not cumulative. */
  readonly counts: number[];
  sum = 0;
  readonly #bounds: readonly number[];

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
    this.counts.push(0);
  }

  add(value: number): void {
    this.sum += value;
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] as number)) index += 1;
    (this.counts[index] as number) += 1;
  }
}

/** The numbers of one metric, by label values. Label values are bounded: servers, methods of the protocol, reasons. */
export class Series<T> {
  readonly #create: () => T;
  readonly #byLabels = new Map<string, { readonly labels: readonly string[]; readonly number: T }>();

  constructor(create: () => T) {
    this.#create = create;
  }

  /** Returns the number for these label values, in the order of the catalogue. Creates it at zero if it is new. */
  of(...labels: string[]): T {
    const key = labels.join('\n');
    const known = this.#byLabels.get(key);
    if (known !== undefined) return known.number;
    const number = this.#create();
    this.#byLabels.set(key, { labels, number });
    return number;
  }

  /** Removes the numbers of all label values. */
  clear(): void {
    this.#byLabels.clear();
  }

  entries(): Iterable<{ readonly labels: readonly string[]; readonly number: T }> {
    return this.#byLabels.values();
  }
}
