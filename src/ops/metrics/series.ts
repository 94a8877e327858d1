/**
 * Numbers that are counted as things happen and looked at when somebody asks. Who counts holds on to the number itself: what
 * happens with every call adds to it and does nothing else, whereas a library's counter looks for its labels each time.
 */
export class Tally {
  value = 0;
}

/** How many values there were up to each bound, and their sum. */
export class Distribution {
  /** One for each bound, and a last one for what is above all. Not cumulative. */
  readonly counts: number[];
  sum = 0;
  readonly #bounds: readonly number[];

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
    this.counts.push(0);
  }

  observe(value: number): void {
    this.sum += value;
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] as number)) index += 1;
    (this.counts[index] as number) += 1;
  }
}

/** The numbers of one metric, by the values of its labels. All of these are bounded: servers, methods of the protocol, reasons. */
export class Series<T> {
  readonly #create: () => T;
  readonly #byLabels = new Map<string, { readonly labels: readonly string[]; readonly number: T }>();

  constructor(create: () => T) {
    this.#create = create;
  }

  /** The number for these labels, in the order of the catalogue; begun at zero with the first call. */
  of(...labels: string[]): T {
    const key = labels.join('\n');
    const known = this.#byLabels.get(key);
    if (known !== undefined) return known.number;
    const number = this.#create();
    this.#byLabels.set(key, { labels, number });
    return number;
  }

  /** Forgets what was counted for all labels. */
  clear(): void {
    this.#byLabels.clear();
  }

  entries(): Iterable<{ readonly labels: readonly string[]; readonly number: T }> {
    return this.#byLabels.values();
  }
}
