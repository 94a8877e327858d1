import type { Exposition, GatewayMetrics, MetricsFeature, MetricsOptions } from '../../app/features/telemetry.ts';
import { usageOf } from '../../core/backend/stdio/processes/process-usage.ts';
import { BackendMetrics } from './collectors/backend-metrics.ts';
import { CallMetrics } from './collectors/call-metrics.ts';
import { countEvents } from './collectors/event-metrics.ts';
import { watchInstance } from './collectors/instance-metrics.ts';
import { watchProcesses } from './collectors/process-metrics.ts';
import { countAppends } from './collectors/store-metrics.ts';
import { Metrics } from './metrics.ts';

export const metrics: MetricsFeature = { create: (options) => connectMetrics(new Metrics(), options) };

/** Connects these numbers to a gateway. */
export function connectMetrics(numbers: Metrics, { toolNames }: MetricsOptions): GatewayMetrics {
  const backends = new BackendMetrics(numbers);
  watchProcesses(numbers, { live: backends.live, usageOf });
  let exposition: Promise<Exposition> | undefined;
  return {
    meter: numbers.meter,
    receive: countEvents(numbers),
    receiveCalls: new CallMetrics(numbers, toolNames).receive,
    countBackends: (server) => backends.countBackends(server),
    countAppends: (log) => countAppends(log, numbers.meter),
    read: () => numbers.read(),
    sumByServer: (keys) => numbers.sumByServer(keys),
    watchInstance: (state) => watchInstance(numbers, state),
    exposition() {
      // Loaded at the first scrape, because loading is a large part of a start.
      exposition ??= import('./exposition.ts').then(({ createExposition }) => createExposition(numbers));
      return exposition;
    },
  };
}
