import type { HrTime } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type MetricData,
  type ScopeMetrics,
} from '@opentelemetry/sdk-metrics';
import type { MetricReading } from '../../app/features/telemetry.ts';

/**
 * Returns the numbers of the gateway as OTLP has them. The names are those of Prometheus, so that dashboards and alerts
 * need no others.
 * @param startedAt when counting began, in milliseconds since the epoch
 */
export function toScopeMetrics(
  name: string,
  version: string,
  readings: readonly MetricReading[],
  startedAt: number,
): ScopeMetrics {
  const startTime = millisToHrTime(startedAt);
  const endTime = millisToHrTime(Date.now());
  return { scope: { name, version }, metrics: readings.map((reading) => metricData(reading, startTime, endTime)) };
}

function metricData({ metric, points }: MetricReading, startTime: HrTime, endTime: HrTime): MetricData {
  const { name, help: description, type, bounds } = metric;
  const common = {
    descriptor: { name, description, unit: metric.unit ?? unitOf(name), valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (type === 'histogram')
    return {
      ...common,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: points.flatMap(({ attributes, value }) =>
        typeof value === 'number' ? [] : [{ startTime, endTime, attributes, value: histogram(value, bounds) }],
      ),
    };
  const dataPoints = points.flatMap(({ attributes, value }): DataPoint<number>[] =>
    typeof value === 'number' ? [{ startTime, endTime, attributes, value }] : [],
  );
  return type === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}

const histogram = ({ counts, sum }: { counts: readonly number[]; sum: number }, boundaries: readonly number[]) => ({
  buckets: { boundaries: [...boundaries], counts: [...counts] },
  sum,
  count: counts.reduce((total, count) => total + count, 0),
});

/** The unit that the name of a metric of Prometheus contains. */
function unitOf(name: string): string {
  if (/_seconds(?:_total)?$/.test(name)) return 's';
  return /_bytes(?:_total)?$/.test(name) ? 'By' : '';
}
