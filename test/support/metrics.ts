import { expectNoLeak } from './canaries.ts';
import { waitFor } from './wait-for.ts';

/** One line of a scrape. */
export interface ScrapedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The metrics of a gateway. */
export interface Scrape {
  readonly text: string;
  readonly samples: readonly ScrapedSample[];
  /** The sum of the samples of this name that have all of these labels; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Scrapes a gateway like Prometheus, and searches the metrics for secrets. */
export async function scrape(adminPort: number): Promise<Scrape> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}: ${text}`);
  expectNoLeak('the metrics of a gateway', text);
  const samples = samplesIn(text);
  return {
    text,
    samples,
    value(name, labels = {}) {
      const found = samples.filter(
        (sample) => sample.name === name && Object.entries(labels).every(([key, word]) => sample.labels[key] === word),
      );
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

/** Scrapes again until the sum of these samples has the expected value. */
export const waitForMetric = (
  adminPort: number,
  name: string,
  labels: Readonly<Record<string, string>>,
  isRight: (value: number | undefined) => boolean,
): Promise<Scrape> =>
  waitFor(
    async () => {
      const scraped = await scrape(adminPort);
      return isRight(scraped.value(name, labels)) ? scraped : undefined;
    },
    { what: `${name}${JSON.stringify(labels)} to be right` },
  );

/** Reads Prometheus' text format, strictly as far as this gateway uses it. */
function samplesIn(text: string): ScrapedSample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', inside = '', value = ''] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
    if (name === '') throw new Error(`no sample: ${line}`);
    const pairs = [...inside.matchAll(/([a-z_0-9]+)="((?:[^"\\]|\\.)*)"/gi)];
    const labels = Object.fromEntries(pairs.map(([, key = '', word = '']) => [key, word]));
    return { name, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) };
  });
}
