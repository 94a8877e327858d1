import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../support/gateway.ts';

/** The example of a preloaded SDK; that it works is shown by `test/integration/tracing.test.ts`. */

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

test('has the packages that its program imports, in the versions that the tests run it with', () => {
  const { dependencies } = JSON.parse(read('deploy/tracing/package.json'));
  const own = JSON.parse(read('package.json'));
  expect({ ...own.dependencies, ...own.devDependencies }).toMatchObject(dependencies);
  const imported = [...read('deploy/tracing/preload.mjs').matchAll(/ from '(.+)'/g)].map(([, name]) => name);
  // The API is what all of them want beside them.
  expect(Object.keys(dependencies).sort()).toEqual(['@opentelemetry/api', ...imported].sort());
});

test('comes with a collector that listens where the exporter sends to, and whose pipeline has all its parts', () => {
  const { receivers, service, ...parts } = parse(read('deploy/tracing/collector.yaml'));
  expect(receivers.otlp.protocols.http.endpoint).toMatch(/:4318$/); // the OTLP specification's port for HTTP
  const { traces } = service.pipelines;
  expect(traces.receivers).toEqual(Object.keys(receivers));
  for (const kind of ['processors', 'exporters']) expect(traces[kind]).toEqual(Object.keys(parts[kind]));
});
