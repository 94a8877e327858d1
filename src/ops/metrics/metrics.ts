import { catalogue, type Metric, type MetricKey } from './catalogue.ts';
import { Distribution, Series, Tally } from './series.ts';

/** One number of a metric, as Prometheus has it: a histogram has several for each set of labels. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All numbers of a gateway. Whoever counts asks for them once; whoever shows them calls `refresh` before. */
export class Metrics {
  readonly #tallies = new Map<MetricKey, Series<Tally>>();
  readonly #distributions = new Map<MetricKey, Series<Distribution>>();
  readonly #refreshers: (() => unknown)[] = [];

  constructor() {
    for (const [key, { type, bounds }] of Object.entries(catalogue) as [MetricKey, Metric][]) {
      if (type === 'histogram') this.#distributions.set(key, new Series(() => new Distribution(bounds)));
      else this.#tallies.set(key, new Series(() => new Tally()));
    }
  }

  /**
   * Begins, at zero, all numbers whose labels are known before something happens: Prometheus does not see the first step of a
   * number that was not there before. Gauges are set when they are looked at.
   */
  begin(servers: readonly string[]): void {
    for (const [key, { type, labels, begun }] of Object.entries(catalogue) as [MetricKey, Metric][]) {
      const known = labels.map(({ name, values }) => (name === 'server' ? servers : values));
      if (type === 'gauge' || (begun === undefined && known.includes(undefined))) continue;
      const series: Series<unknown> = this.#tallies.get(key) ?? this.distributions(key);
      const all = begun
        ? servers.flatMap((server) => begun.map((others) => [server, ...others]))
        : combinations(known as (readonly string[])[]);
      for (const values of all) series.of(...values);
    }
  }

  /** The numbers of a counter or gauge. */
  tallies(key: MetricKey): Series<Tally> {
    return this.#tallies.get(key) as Series<Tally>;
  }

  /** The numbers of a histogram. */
  distributions(key: MetricKey): Series<Distribution> {
    return this.#distributions.get(key) as Series<Distribution>;
  }

  /** Adds what brings numbers up to date that nobody counts as they change; a promise of it is waited for. */
  onRefresh(refresh: () => unknown): void {
    this.#refreshers.push(refresh);
  }

  /** Brings all numbers up to date. Rejects only for a fault of the gateway itself. */
  async refresh(): Promise<void> {
    await Promise.all(this.#refreshers.map((refresh) => refresh()));
  }

  /** The samples of a metric as they are now. */
  samples(key: MetricKey): Sample[] {
    const metric: Metric = catalogue[key];
    const { name, type } = metric;
    if (type === 'histogram') {
      return [...this.distributions(key).entries()].flatMap(({ labels, number }) =>
        samplesOf(metric, named(metric, labels), number),
      );
    }
    return Array.from(this.tallies(key).entries(), ({ labels, number }) => ({
      name,
      labels: named(metric, labels),
      value: number.value,
    }));
  }
}

/** Every choice of one from each. */
const combinations = (lists: readonly (readonly string[])[]): readonly (readonly string[])[] =>
  lists.reduce<readonly (readonly string[])[]>(
    (chosen, list) => chosen.flatMap((before) => list.map((value) => [...before, value])),
    [[]],
  );

const named = (metric: Metric, values: readonly string[]): Record<string, string> =>
  Object.fromEntries(metric.labels.map(({ name }, index) => [name, values[index] ?? '']));

function samplesOf({ name, bounds }: Metric, labels: Sample['labels'], { counts, sum }: Distribution): Sample[] {
  let count = 0;
  const buckets = counts.map((inBucket, index) => {
    count += inBucket;
    const le = index < bounds.length ? `${bounds[index]}` : '+Inf';
    return { name: `${name}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [...buckets, { name: `${name}_sum`, labels, value: sum }, { name: `${name}_count`, labels, value: count }];
}
