import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../support/gateway.ts';

test('the collector listens where the exporter sends to, and each pipeline has all parts', () => {
  const { receivers, service, ...parts } = parse(readFileSync(`${root}deploy/opentelemetry/collector.yaml`, 'utf8'));
  expect(receivers.otlp.protocols.http.endpoint).toMatch(/:4318$/); // the OTLP specification's port for HTTP
  expect(Object.keys(service.pipelines)).toEqual(['traces', 'metrics', 'logs']);
  for (const pipeline of Object.values<Record<string, readonly string[]>>(service.pipelines)) {
    expect(pipeline['receivers']).toEqual(Object.keys(receivers));
    for (const kind of ['processors', 'exporters']) expect(pipeline[kind]).toEqual(Object.keys(parts[kind]));
  }
});
