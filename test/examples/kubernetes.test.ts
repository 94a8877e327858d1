import { readFileSync } from 'node:fs';
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import { expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfiguration } from '../../src/config/config.ts';
import { root } from '../support/gateway.ts';
import { type Manifest, typeFaults } from '../support/kubernetes-types.ts';
import { findFreePort } from '../support/redis-process.ts';
import { has } from './nginx.ts';
import { blocksOf } from './page.ts';
import { walk } from './walk.ts';

const page = 'docs/recipes/kubernetes.md';
const blocks = blocksOf(readFileSync(`${root}${page}`, 'utf8'));

it(`${page} has objects without unknown fields or values of another type`, async () => {
  // values.yaml is for Helm: test/chart renders it.
  const others = ['cluster/kustomization.yaml', 'values.yaml'];
  const files = blocks.filter(({ file = '' }) => file.endsWith('.yaml') && !others.includes(file));
  const objects = files.flatMap(({ text }) => parseAllDocuments(text).map((document): Manifest => document.toJS()));
  expect(objects.map(({ kind }) => kind)).toEqual(['Deployment', 'Service', 'HTTPRoute', 'NetworkPolicy']);
  // The types are those of Kubernetes itself, which the Gateway API is no part of.
  expect(await typeFaults(objects.filter(({ kind }) => kind !== 'HTTPRoute'))).toBe('');
}, 120_000);

it(`${page} has a configuration that the gateway accepts`, () => {
  const text = blocks.find(({ file }) => file === 'cluster/gangway.json')?.text ?? '';
  const files = new Map([
    ['gangway.json', text],
    ['/etc/mcp-gangway-secret/keys.json', '[]'],
    ['/etc/mcp-gangway-secret/redis-url', 'redis://:password@redis:6379\n'],
  ]);
  const readFile = (path: string) => files.get(path) ?? expect.fail(`${path} is not mounted`);
  const read = readConfiguration({ argv: ['--config', 'gangway.json'], env: {}, readFile });
  expect(read).toMatchObject({ ok: true, config: { cluster: { redis: 'redis://:password@redis:6379' } } });
  const [route] = parseAllDocuments(blocks.find(({ file }) => file === 'cluster/route.yaml')?.text ?? '');
  expect(JSON.parse(text).listen.allowedHosts).toEqual(expect.arrayContaining(route?.toJS().spec.hostnames));
});

// CI has no kubectl.
it.skipIf(!has('kubectl', 'version', '--client'))(`${page} leads to objects that kubectl builds`, async () => {
  const recipe = await walk({
    page,
    folder: '.',
    programs: { kubectl: `HOME=/ PATH="${process.env['PATH']}" exec kubectl "$@"` },
  });
  const secret = parse(await recipe.run('cat secret.yaml'));
  expect(secret).toMatchObject({ kind: 'Secret', metadata: { name: 'mcp-gangway', namespace: 'mcp-gangway' } });
  const made: Manifest[] = parseAllDocuments(await recipe.run('cat objects.yaml')).map((object) => object.toJS());
  const pods = made.filter(({ kind }) => kind === 'Deployment').map((object) => object as Deployment);
  // Both pods mount keys that the Secret has, and no variable refers to it.
  const items = pods
    .flatMap(({ spec }) => spec?.template.spec?.volumes ?? [])
    .flatMap(({ secret: of }) => of?.items ?? []);
  expect(items.map(({ key }) => key).toSorted()).toEqual(Object.keys(secret.data).toSorted());
  for (const { spec } of pods) for (const { env } of spec?.template.spec?.containers ?? []) expect(env).toBeUndefined();

  // The Redis of the recipe, with its command and its file, accepts the URL of the recipe, and no other password.
  const [name, file, ...options] =
    pods.find(({ metadata }) => metadata?.name === 'redis')?.spec?.template.spec?.containers[0]?.command ?? [];
  expect([name, file]).toEqual(['redis-server', '/etc/redis/redis.conf']);
  const port = await findFreePort();
  const words = options.map((option) => `'${option}'`).join(' ');
  await recipe.run(`redis-server redis.conf ${words} --port ${port} --bind 127.0.0.1 > redis.log &`);
  await recipe.run(`until grep -q 'Ready to accept' redis.log; do sleep 0.1; done`);
  await recipe.run(
    `sed 's/@redis:6379/@127.0.0.1:${port}/' redis-url > url; sed 's/:@*[0-9a-f]*@/:wrong@/' url > wrong`,
  );
  const check = (url: string) =>
    recipe.run(`mcp-gangway check --redis '\${file:${url}}' -- node examples/servers/stdio-server.mjs || true`);
  expect(await check('url')).toContain('OK    Redis');
  expect(await check('wrong')).toContain('FAIL  Redis');
});
