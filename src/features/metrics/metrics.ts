// Metrics: the numbers of the gateway, which collectors count and Prometheus scrapes.

import type { MetricReading } from '../../app/features/telemetry.ts';
import { catalogue, type Metric, type MetricKey } from '../../core/ops/metrics/catalogue.ts';
import type { FindMeter } from '../../core/util/telemetry/meter.ts';
import { Distribution, Series, Tally } from './series.ts';

/** One number of a metric in the form of Prometheus. A histogram has several for each set of labels. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Holds all numbers of a gateway. A counting caller asks for a number once and keeps it. A reader calls `refresh`
 * first.
 */
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
   * Creates at zero all numbers whose labels are known in advance, because Prometheus does not see the first step of a
   * new number. Gauges are set when they are read.
   */
  createSeries(servers: readonly string[]): void {
    for (const [key, { type, labels, presetLabels }] of Object.entries(catalogue) as [MetricKey, Metric][]) {
      const known = labels.map(({ name, values }) => (name === 'server' ? servers : values));
      if (type === 'gauge' || (presetLabels === undefined && known.includes(undefined))) continue;
      const series: Series<unknown> = this.#tallies.get(key) ?? this.distributions(key);
      const all = presetLabels
        ? servers.flatMap((server) => presetLabels.map((others) => [server, ...others]))
        : combinations(known as (readonly string[])[]);
      for (const values of all) series.of(...values);
    }
  }

  /** Finds the number that a part of the gateway adds to. */
  readonly meter: FindMeter<MetricKey> = (key, ...labels) =>
    (this.#tallies.get(key) ?? this.distributions(key)).of(...labels);

  /** Returns the numbers of a counter or gauge. */
  tallies(key: MetricKey): Series<Tally> {
    return this.#tallies.get(key) as Series<Tally>;
  }

  /** Returns the sums of counters or gauges by their first label, the server. */
  sumByServer(keys: readonly MetricKey[]): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const key of keys)
      for (const { labels, number } of this.tallies(key).entries()) {
        const server = labels[0] ?? '';
        sums.set(server, (sums.get(server) ?? 0) + number.value);
      }
    return sums;
  }

  /** Returns the numbers of a histogram. */
  distributions(key: MetricKey): Series<Distribution> {
    return this.#distributions.get(key) as Series<Distribution>;
  }

  /** Adds a function that updates numbers that nobody counts as they change. `refresh` awaits its promise. */
  onRefresh(refresh: () => unknown): void {
    this.#refreshers.push(refresh);
  }

  /** Updates all numbers. Rejects only for a fault of the gateway itself. */
  async refresh(): Promise<void> {
    await Promise.all(this.#refreshers.map((refresh) => refresh()));
  }

  /** Updates all numbers, and returns them, for an export. */
  async read(): Promise<readonly MetricReading[]> {
    await this.refresh();
    return (Object.entries(catalogue) as [MetricKey, Metric][]).map(([key, metric]) => {
      const numbers: Series<Tally | Distribution> =
        metric.type === 'histogram' ? this.distributions(key) : this.tallies(key);
      const points = Array.from(numbers.entries(), ({ labels, number }) => ({
        attributes: labelsOf(metric, labels),
        value: number instanceof Distribution ? { counts: number.counts, sum: number.sum } : number.value,
      }));
      return { metric, points };
    });
  }

  /** Returns the current samples of a metric. */
  samples(key: MetricKey): Sample[] {
    const metric: Metric = catalogue[key];
    const { name, type } = metric;
    if (type === 'histogram') {
      return [...this.distributions(key).entries()].flatMap(({ labels, number }) =>
        samplesOf(metric, labelsOf(metric, labels), number),
      );
    }
    return Array.from(this.tallies(key).entries(), ({ labels, number }) => ({
      name,
      labels: labelsOf(metric, labels),
      value: number.value,
    }));
  }
}

/** Returns the Cartesian product. */
const combinations = (lists: readonly (readonly string[])[]): readonly (readonly string[])[] =>
  lists.reduce<readonly (readonly string[])[]>(
    (chosen, list) => chosen.flatMap((before) => list.map((value) => [...before, value])),
    [[]],
  );

const labelsOf = (metric: Metric, values: readonly string[]): Record<string, string> =>
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
