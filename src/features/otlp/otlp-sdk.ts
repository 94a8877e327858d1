import { propagation, TraceFlags, trace } from '@opentelemetry/api';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  LogsExporterMetricsHelper,
  MetricsExporterMetricsHelper,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import type { ResourceMetrics, ScopeMetrics } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { OtlpOptions } from '../../app/features/telemetry.ts';
import { detach } from '../../core/util/boundary.ts';
import { ExportCounts } from './export-counts.ts';
import { OtlpExporter } from './otlp-exporter.ts';
import type { OtlpSettings } from './otlp-settings.ts';
import { WaitingItems } from './waiting-items.ts';

/** Sends a log record. */
type EmitRecord = ReturnType<LoggerProvider['getLogger']>['emit'];

/** The numbers of OpenTelemetry for the levels of the log (OpenTelemetry, "Logs Data Model", "SeverityNumber"). */
const severities: Readonly<Record<string, number>> = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };

/**
 * Sends lines of the log. The message is the body of the record, and the other fields are attributes with the names of
 * docs/logs.md.
 */
const lineRecord =
  (emit: EmitRecord) =>
  (line: string): void => {
    const { level, time, msg, ...fields } = JSON.parse(line);
    emit({
      timestamp: new Date(time),
      severityNumber: severities[level] ?? 0,
      severityText: level,
      body: msg,
      attributes: fields,
    });
  };

/** Sends records of the audit log. Their fields are attributes with the names of docs/audit.md. */
const auditRecord =
  (emit: EmitRecord) =>
  (record: string): void => {
    const { time, ...fields } = JSON.parse(record);
    emit({
      timestamp: new Date(time),
      eventName: 'mcp_gangway.audit',
      severityNumber: 9,
      severityText: 'info',
      attributes: fields,
    });
  };

/** The name of the gateway in telemetry. */
const scope = 'mcp-gangway';

/** The longest text of one field of a log record (P8). A line of the log has longer texts only at `debug`. */
const maxFieldLength = 8_192;

/** The part of OTLP that needs the optional packages. */
export interface OtlpSdk {
  readonly counts: ExportCounts;
  /** Sends a line of the log; undefined without logs. */
  readonly writeLine: ((line: string) => void) | undefined;
  /** Sends a record of the audit log; undefined without logs. */
  readonly writeAudit: ((record: string) => void) | undefined;
  /** Exports metrics from now on, again and again; undefined without metrics. */
  readonly exportMetrics: ((collect: () => Promise<ScopeMetrics[]>) => void) | undefined;
  /** Exports what waits. Resolves when that is done. */
  flush(): Promise<void>;
}

/** Starts the exporters of the signals that the variables name. */
export function startOtlpSdk(
  { signals, isJson, maxWaiting, metricIntervalMs }: OtlpSettings,
  { version, instance, logger }: OtlpOptions,
): OtlpSdk {
  const counts = new ExportCounts(logger);
  const resource = resourceOf(version, instance);
  const flushes: (() => Promise<void>)[] = [];
  if (signals.includes('traces')) {
    const waiting = new WaitingItems('traces', maxWaiting.traces, counts);
    const form = {
      signal: 'traces',
      isJson: isJson.traces,
      json: JsonTraceSerializer,
      protobuf: ProtobufTraceSerializer,
      helper: TraceExporterMetricsHelper,
    } as const;
    const processor = new BatchSpanProcessor(new OtlpExporter(form, counts, waiting.settle), {
      maxQueueSize: maxWaiting.traces,
    });
    const bounded = {
      onStart: processor.onStart.bind(processor),
      onEnd(span: Parameters<typeof processor.onEnd>[0]): void {
        if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0 && waiting.take()) processor.onEnd(span);
      },
      forceFlush: () => processor.forceFlush(),
      shutdown: () => processor.shutdown(),
    };
    const provider = new BasicTracerProvider({ resource, spanProcessors: [bounded] });
    // An SDK that was loaded before the gateway keeps its provider, and exports the spans itself.
    if (trace.setGlobalTracerProvider(provider)) {
      propagation.setGlobalPropagator(propagators());
      flushes.push(() => processor.forceFlush());
    }
  }
  let emit: EmitRecord | undefined;
  if (signals.includes('logs')) {
    const waiting = new WaitingItems('logs', maxWaiting.logs, counts);
    const form = {
      signal: 'logs',
      isJson: isJson.logs,
      json: JsonLogsSerializer,
      protobuf: ProtobufLogsSerializer,
      helper: LogsExporterMetricsHelper,
    } as const;
    const processor = new BatchLogRecordProcessor({
      exporter: new OtlpExporter(form, counts, waiting.settle),
      maxQueueSize: maxWaiting.logs,
      maxExportBatchSize: Math.min(512, maxWaiting.logs),
    });
    const provider = new LoggerProvider({
      resource,
      processors: [processor],
      logRecordLimits: { attributeValueLengthLimit: maxFieldLength },
    });
    const logs = provider.getLogger(scope, version);
    emit = (record) => {
      if (waiting.take()) logs.emit(record);
    };
    flushes.push(() => processor.forceFlush());
  }
  let exportMetrics: OtlpSdk['exportMetrics'];
  if (signals.includes('metrics')) {
    const form = {
      signal: 'metrics',
      isJson: isJson.metrics,
      json: JsonMetricsSerializer,
      protobuf: ProtobufMetricsSerializer,
      helper: MetricsExporterMetricsHelper,
    } as const;
    const exporter = new OtlpExporter<ResourceMetrics, unknown>(form, counts, () => undefined);
    exportMetrics = (collect) => {
      let isExporting = false;
      const exportNow = async (): Promise<void> => {
        if (isExporting) return; // the collector is slow or away: the next export has all numbers
        isExporting = true;
        try {
          const scopeMetrics = await collect();
          await new Promise<void>((resolve) => exporter.export({ resource, scopeMetrics }, () => resolve()));
        } finally {
          isExporting = false;
        }
      };
      setInterval(() => detach('background', exportNow()), metricIntervalMs).unref();
      flushes.push(exportNow);
    };
  }
  return {
    counts,
    writeLine: emit && lineRecord(emit),
    writeAudit: emit && auditRecord(emit),
    exportMetrics,
    async flush() {
      await Promise.allSettled(flushes.map((flush) => flush()));
    },
  };
}

/** Who exports. The variables of OpenTelemetry come first. */
const resourceOf = (version: string, instance: string): Resource =>
  defaultResource()
    .merge(
      resourceFromAttributes({ 'service.name': scope, 'service.version': version, 'service.instance.id': instance }),
    )
    .merge(detectResources({ detectors: [envDetector] }));

const propagators = () =>
  new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] });
