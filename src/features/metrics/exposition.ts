import { collectDefaultMetrics, type Metric as PromMetric, Registry } from 'prom-client';
import type { Exposition } from '../../app/features/telemetry.ts';
import { catalogue, type Metric, type MetricKey } from '../../core/ops/metrics/catalogue.ts';
import type { Metrics } from './metrics.ts';

/**
 * Omitted metrics. They list everything that Node.js has open, which takes milliseconds with thousands of streams and
 * tells little.
 */
const omittedMetrics = ['handles', 'requests', 'resources'].flatMap((kind) => [
  `nodejs_active_${kind}`,
  `nodejs_active_${kind}_total`,
]);

/**
 * Renders the metrics of the gateway and of its process in Prometheus' text format. prom-client collects the process
 * metrics (memory, processor time, event loop, garbage collection) and writes the format. The gateway's own numbers are
 * only read when Prometheus scrapes.
 */
export function createExposition(metrics: Metrics): Exposition {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of omittedMetrics) registry.removeSingleMetric(name);
  for (const [key, { name, help, type }] of Object.entries(catalogue) as [MetricKey, Metric][]) {
    const get = async (): Promise<object> => ({
      name,
      help,
      type,
      aggregator: 'sum',
      values: metrics.samples(key).map(({ name: metricName, ...sample }) => ({ metricName, ...sample })),
    });
    // A registry uses only the name and `get`, but the type requires a class of the library.
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
