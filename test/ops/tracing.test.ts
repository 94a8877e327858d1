import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-node';
import { expect, test } from 'vitest';
import { findTracing } from '../../src/ops/tracing.ts';

test('without an SDK there is no tracing; with one, its spans are handed over at the end, or not waited for', async () => {
  expect(findTracing('1')).toBeUndefined();
  let flushes = 0;
  const provider = new BasicTracerProvider();
  provider.forceFlush = async () => {
    flushes += 1;
    if (flushes === 2) throw new Error('the collector is away');
    if (flushes === 3) await new Promise(() => undefined);
  };
  trace.setGlobalTracerProvider(provider);
  const tracing = findTracing('1');
  expect(tracing?.tracer.startSpan('x').isRecording()).toBe(true);
  for (const expected of [1, 2, 3]) {
    await tracing?.flush();
    expect(flushes).toBe(expected);
  }
});
