import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import { findTracing } from '../../../src/features/tracing/find-tracing.ts';

afterEach(() => trace.disable());

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

test('an SDK that has brought its own copy of the API is found, and flushed, too', async () => {
  let flushes = 0;
  const provider = new BasicTracerProvider();
  provider.forceFlush = async () => {
    flushes += 1;
  };
  // As another copy of the class has it: the same members, and another prototype.
  const foreign = {
    getTracer: () => provider.getTracer('x'),
    getDelegate: () => provider,
    getDelegateTracer: () => provider.getTracer('x'),
  };
  const key = Symbol.for('opentelemetry.js.api.1');
  Object.assign(globalThis, { [key]: { version: '1.10.0', trace: foreign } });
  const tracing = findTracing('1');
  expect(tracing?.tracer.startSpan('x').isRecording()).toBe(true);
  await tracing?.flush();
  expect(flushes).toBe(1);
  Reflect.deleteProperty(globalThis, key);
});
