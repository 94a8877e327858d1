import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { expect, test } from 'vitest';
import { loadTracing } from '../../../src/features/tracing/load-tracing.ts';

test('there is tracing once an SDK has registered its provider, and nothing of it before', async () => {
  expect(await loadTracing('1')).toBeUndefined();
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  expect(await loadTracing('1')).toMatchObject({ tracePosts: expect.any(Function) });
});
