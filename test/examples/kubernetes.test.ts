import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readConfiguration } from '../../src/config/config.ts';
import { root } from '../support/gateway.ts';
import { type Manifest, typeFaults } from '../support/kubernetes-types.ts';
import { has } from './nginx.ts';
import { blocksOf } from './page.ts';
import { walk } from './walk.ts';

const page = 'docs/recipes/kubernetes.md';
const blocks = blocksOf(readFileSync(`${root}${page}`, 'utf8'));

it(`${page} has objects without unknown fields or values of another type`, async () => {
  const files = blocks.filter(({ file }) => file?.endsWith('.yaml') && !file.endsWith('kustomization.yaml'));
  const objects = files.flatMap(({ text }) => parseAllDocuments(text).map((document): Manifest => document.toJS()));
  expect(objects.map(({ kind }) => kind)).toEqual(['Deployment', 'Service', 'HTTPRoute', 'NetworkPolicy']);
  // The types are those of Kubernetes itself, which the Gateway API is no part of.
  expect(await typeFaults(objects.filter(({ kind }) => kind !== 'HTTPRoute'))).toBe('');
}, 120_000);

it(`${page} has a configuration that the gateway accepts`, () => {
  const text = blocks.find(({ file }) => file === 'cluster/gangway.json')?.text ?? '';
  const readFile = (path: string) => (path.endsWith('keys.json') ? '[]' : text);
  expect(readConfiguration({ argv: ['--config', 'gangway.json'], env: {}, readFile })).toMatchObject({ ok: true });
  const [route] = parseAllDocuments(blocks.find(({ file }) => file === 'cluster/route.yaml')?.text ?? '');
  expect(JSON.parse(text).listen.allowedHosts).toEqual(expect.arrayContaining(route?.toJS().spec.hostnames));
});

// CI has no kubectl.
it.skipIf(!has('kubectl', 'version', '--client'))(`${page} leads to objects that kubectl builds`, async () => {
  await walk({ page, folder: '.', programs: { kubectl: `HOME=/ PATH="${process.env['PATH']}" exec kubectl "$@"` } });
});
