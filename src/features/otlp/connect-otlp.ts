import type { MetricReading, Otlp, OtlpOptions } from '../../app/features/telemetry.ts';
import { within } from '../../core/util/timing/within.ts';
import { ConventionMetrics } from './convention-metrics.ts';
import { toScopeMetrics } from './metrics-export.ts';
import { startOtlpSdk } from './otlp-sdk.ts';
import type { OtlpSettings } from './otlp-settings.ts';

/** Connects the exporters of OpenTelemetry with a gateway. */
export function connectOtlp(settings: OtlpSettings, options: OtlpOptions): Otlp {
  const { version } = options;
  const sdk = startOtlpSdk(settings, options);
  const startedAt = Date.now();
  const { writeLine, writeAudit, exportMetrics } = sdk;
  return {
    writeLine,
    writeAudit,
    countWith: (meterOf) => sdk.counts.countWith(meterOf),
    exportMetrics:
      exportMetrics &&
      (({ names, read }) => {
        const conventions = new ConventionMetrics(names);
        const scoped = (readings: readonly MetricReading[], name: string) =>
          toScopeMetrics(name, version, readings, startedAt);
        exportMetrics(async () => [scoped(await read(), 'mcp-gangway'), scoped(conventions.read(), 'mcp-gangway/mcp')]);
        return conventions;
      }),
    flush: (withinMs) => within(sdk.flush(), withinMs, () => undefined),
  };
}
