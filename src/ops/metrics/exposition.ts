import { collectDefaultMetrics, type Metric as PromMetric, Registry } from 'prom-client';
import { catalogue, type Metric, type MetricKey } from './catalogue.ts';
import type { Metrics } from './metrics.ts';

/** Lists of all that Node.js has open are made for these: with thousands of streams that takes milliseconds, and tells little. */
const leftOut = ['handles', 'requests', 'resources'].flatMap((kind) => [
  `nodejs_active_${kind}`,
  `nodejs_active_${kind}_total`,
]);

/** What Prometheus is given. */
export interface Exposition {
  readonly contentType: string;
  /** All metrics as text, as they are now. */
  render(): Promise<string>;
}

/**
 * The metrics of the gateway and of its process in Prometheus' text format. prom-client brings those of the process (memory,
 * processor time, event loop, garbage collection) and the format; the gateway's own numbers are only read for it.
 */
export function createExposition(metrics: Metrics): Exposition {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of leftOut) registry.removeSingleMetric(name);
  for (const [key, { name, help, type }] of Object.entries(catalogue) as [MetricKey, Metric][]) {
    const get = async (): Promise<object> => ({
      name,
      help,
      type,
      aggregator: 'sum',
      values: metrics.samples(key).map(({ name: metricName, ...sample }) => ({ metricName, ...sample })),
    });
    // What a registry asks of a metric is its name and what `get` gives; the type wants one of the library's own classes.
    registry.registerMetric({ name, get } as unknown as PromMetric);
  }
  return {
    contentType: registry.contentType,
    async render() {
      await metrics.refresh();
      return registry.metrics();
    },
  };
}
