/** What OTLP carries. */
export const signals = ['traces', 'metrics', 'logs'] as const;

export type Signal = (typeof signals)[number];

/** The variables of OpenTelemetry, as far as the gateway reads them itself. The SDK reads those of each exporter. */
export interface OtlpSettings {
  /** The signals with an endpoint; empty if nobody wants OTLP. */
  readonly signals: readonly Signal[];
  /** `http/json`, or `http/protobuf`, by signal. */
  readonly isJson: Readonly<Record<Signal, boolean>>;
  /** The time between two exports of metrics. */
  readonly metricIntervalMs: number;
  /** The most spans, and the most log records, that wait for the collector. */
  readonly maxWaiting: Readonly<Record<'traces' | 'logs', number>>;
  /** What the variables want and the gateway cannot do, one sentence each. */
  readonly warnings: readonly string[];
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Reads the variables. The names and defaults are those of the OpenTelemetry specification. */
export function readOtlpSettings(variables: Variables): OtlpSettings {
  const warnings: string[] = [];
  const isOff = variables['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true';
  const wanted = isOff ? [] : signals.filter((signal) => isWanted(variables, signal));
  const isJson = (signal: Signal): boolean => {
    const [name, value] = protocolOf(variables, signal);
    if (value === 'grpc' && wanted.includes(signal))
      warnings.push(
        `${name}=grpc is not supported, so ${signal} go as http/protobuf. Use the collector's port for HTTP, usually 4318.`,
      );
    return value === 'http/json';
  };
  const preference = variables['OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE']?.trim().toLowerCase();
  if (wanted.includes('metrics') && preference !== undefined && !['', 'cumulative'].includes(preference))
    warnings.push('The gateway exports cumulative metrics only. A collector can convert them (cumulativetodelta).');
  return {
    signals: wanted,
    isJson: { traces: isJson('traces'), metrics: isJson('metrics'), logs: isJson('logs') },
    metricIntervalMs: positive(variables['OTEL_METRIC_EXPORT_INTERVAL'], 60_000),
    maxWaiting: {
      traces: positive(variables['OTEL_BSP_MAX_QUEUE_SIZE'], 2_048),
      logs: positive(variables['OTEL_BLRP_MAX_QUEUE_SIZE'], 2_048),
    },
    warnings,
  };
}

/** True if a signal has an endpoint, and no variable names another exporter for it. */
function isWanted(variables: Variables, signal: Signal): boolean {
  const upper = signal.toUpperCase();
  const hasEndpoint = ['OTEL_EXPORTER_OTLP_ENDPOINT', `OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`].some(
    (name) => (variables[name] ?? '').trim() !== '',
  );
  const exporters = variables[`OTEL_${upper}_EXPORTER`] ?? 'otlp';
  return hasEndpoint && exporters.split(',').some((each) => ['otlp', ''].includes(each.trim()));
}

/** The variable that determines the protocol of a signal, and its value. */
function protocolOf(variables: Variables, signal: Signal): readonly [name: string, value: string] {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_PROTOCOL`;
  const name = (variables[own] ?? '') === '' ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : own;
  return [name, (variables[name] ?? '').trim()];
}

function positive(text: string | undefined, otherwise: number): number {
  const value = Number(text);
  return text !== undefined && Number.isSafeInteger(value) && value > 0 ? value : otherwise;
}
