import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ExportCounts } from '../../../src/features/otlp/export-counts.ts';
import { readOtlpSettings } from '../../../src/features/otlp/otlp-settings.ts';
import { WaitingItems } from '../../../src/features/otlp/waiting-items.ts';

const base = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
const own = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://127.0.0.1:4318/x' };

test.each([
  [{}, []],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, []],
  [base, ['traces', 'metrics', 'logs']],
  [own, ['metrics']],
  [{ ...base, OTEL_SDK_DISABLED: 'TRUE' }, []],
  [{ ...base, OTEL_TRACES_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'console,otlp' }, ['metrics', 'logs']],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, []],
])('the signals of %j are %j', (variables, signals) => {
  expect(readOtlpSettings(variables).signals).toEqual(signals);
});

test('the protocol of a signal comes before the common one; what is not supported is said', () => {
  const { isJson, warnings } = readOtlpSettings({
    ...base,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
  });
  expect(isJson).toEqual({ traces: true, metrics: true, logs: false });
  expect(warnings).toEqual([
    expect.stringContaining('cumulative'),
    expect.stringContaining('OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=grpc is not supported, so logs go as http/protobuf'),
  ]);
});

test('[P8] items above the limit are lost and counted, until the export of others has ended', () => {
  const lost: unknown[] = [];
  const counts = new ExportCounts(pino({ enabled: false }));
  const waiting = new WaitingItems('logs', 2, counts);
  expect([waiting.take(), waiting.take(), waiting.take()]).toEqual([true, true, false]);
  // The start of a gateway has no meters yet.
  counts.countWith((...labels) => ({ add: (items) => void lost.push([...labels, items]) }));
  expect(waiting.take()).toBe(false);
  waiting.settle(1);
  expect(waiting.take()).toBe(true);
  const one = ['otlpItems', 'logs', 'lost', 1];
  expect(lost).toEqual([one, one]);
});
