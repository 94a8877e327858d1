import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.d.ts';
import type { ConfigMap, Container, Service } from 'kubernetes-types/core/v1.d.ts';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.d.ts';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type GatewayConfig, readConfiguration } from '../../src/config/config.ts';
import { root } from '../support/gateway.ts';
import { type Manifest, typeFaults } from '../support/kubernetes-types.ts';
import { chart, helm, helmWithChart, installHelm, isCustom, render, validateCustom } from './helm.ts';

/** The Helm chart, rendered by helm: that Kubernetes knows the objects, and that the gateway in it starts. */

const everything = {
  replicaCount: 3,
  'image.digest': `sha256:${'a'.repeat(64)}`,
  imagePullSecrets: [{ name: 'registry' }],
  servers: { git: { command: 'uvx', args: ['mcp-server-git'] }, wiki: { url: 'https://wiki.example.com/mcp' } },
  'auth.existingSecret': 'keys',
  'redis.enabled': false,
  'redis.existingSecret': 'redis',
  'ingress.enabled': true,
  'ingress.className': 'nginx',
  'ingress.hosts': ['mcp.example.com'],
  'ingress.tls': [{ hosts: ['mcp.example.com'], secretName: 'mcp-tls' }],
  'route.enabled': true,
  'route.parentRefs': [{ name: 'public', namespace: 'gateways' }],
  'route.hostnames': ['mcp.example.org'],
  'autoscaling.enabled': true,
  'metrics.enabled': true,
  'metrics.podMonitor.enabled': true,
  'metrics.podMonitor.labels': { release: 'prometheus' },
  'networkPolicy.clients': [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'gateways' } } }],
  'networkPolicy.monitors': [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
  'networkPolicy.egress': [{ to: [{ ipBlock: { cidr: '10.0.0.5/32' } }], ports: [{ port: 6379 }] }],
  'service.annotations': { team: 'tools' },
  serviceAccountName: 'gangway',
  priorityClassName: 'high',
  podAnnotations: { note: 'yes' },
  podLabels: { team: 'tools' },
  nodeSelector: { 'kubernetes.io/arch': 'amd64' },
  tolerations: [{ key: 'tools', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  extraEnv: [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'tokens', key: 'wiki' } } }],
  extraEnvFrom: [{ secretRef: { name: 'more' } }],
  extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
};
const redisUrl = 'redis://:password@redis:6379';
const single = {
  replicaCount: 1,
  'redis.enabled': false,
  'networkPolicy.enabled': false,
  'podDisruptionBudget.enabled': false,
};

beforeAll(installHelm);

describe.each([
  ['the defaults', {}],
  ['every switch', everything],
  ['one gateway without Redis', single],
])('with %s', (_name, values) => {
  it('has no field that Kubernetes does not know, and no value of another type', async () => {
    const manifests = await render(values);
    expect(await typeFaults(manifests.filter((manifest) => !isCustom(manifest)))).toBe('');
    for (const manifest of manifests.filter(isCustom)) await validateCustom(manifest);
  });

  it('has a configuration that the gateway accepts without a warning', async () => {
    const read = configurationOf(await render(values));
    expect(read).toMatchObject({ ok: true, warnings: [] });
  });

  it('has selectors that match exactly the pods that they mean', async () => {
    const manifests = await render(values);
    const workloads = manifests.filter(({ kind }) => kind === 'Deployment') as Deployment[];
    for (const { spec } of manifests.filter(({ kind }) => kind === 'Service') as Service[]) {
      const selected = workloads.filter(({ spec: workload }) =>
        Object.entries(spec?.selector ?? {}).every(
          ([label, value]) => workload?.template.metadata?.labels?.[label] === value,
        ),
      );
      expect(selected).toHaveLength(1);
      const ports = selected[0]?.spec?.template.spec?.containers[0]?.ports?.map(({ name }) => name);
      for (const { targetPort } of spec?.ports ?? []) expect(ports).toContain(targetPort);
    }
    for (const { spec } of workloads)
      expect(spec?.template.metadata?.labels).toMatchObject(spec?.selector.matchLabels ?? {});
  });
});

describe('the checks of objects', () => {
  it('find misspelt fields of the Kubernetes API, the Gateway API and the Prometheus Operator', async () => {
    const manifests = await render(everything);
    const of = (kind: string) => structuredClone(manifests.find((manifest) => manifest.kind === kind)) as never;
    const deployment: Deployment = of('Deployment');
    Object.assign(deployment.spec?.template.spec ?? {}, { terminationGracePeriod: 35 });
    expect(await typeFaults([deployment as Manifest])).toContain('terminationGracePeriod');
    for (const kind of ['HTTPRoute', 'PodMonitor']) {
      const custom: Manifest & { spec: object } = of(kind);
      custom.spec = {};
      if (kind === 'HTTPRoute') Object.assign(custom.spec, { rules: [{ timeouts: { request: 'never' } }] });
      await expect(validateCustom(custom)).rejects.toThrow();
    }
  });
});

describe('the defaults', () => {
  it('run the gateway in the state in which docker-compose.yml runs it', async () => {
    const compose = parse(readFileSync(`${root}docker-compose.yml`, 'utf8'), { merge: true }).services;
    const example = readFileSync(`${root}examples/two-hosts-with-redis-and-nginx/gangway.json`, 'utf8');
    const fromCompose = configOf(
      readConfiguration({
        argv: compose['gateway-1'].command,
        env: { ...imageEnvironment(), ...compose['gateway-1'].environment },
        readFile: () => example,
      }),
    );
    const manifests = await render();
    const fromChart = configOf(configurationOf(manifests));
    const differing = Object.entries(fromChart).flatMap(([name, chart]) => {
      const composed: unknown = Reflect.get(fromCompose, name);
      if (Array.isArray(chart) || typeof chart !== 'object') return isDeepStrictEqual(chart, composed) ? [] : [name];
      return Object.entries(chart)
        .filter(([key, value]) => !isDeepStrictEqual(value, Reflect.get(Object(composed), key)))
        .map(([key]) => `${name}.${key}`);
    });
    // The names of this cluster, its servers, the port and address between instances, which compose need not know, and the
    // folder of packages: a pod has no volume of the image.
    const own = ['cluster.link', 'cluster.redis', 'listen.allowedHosts', 'packages.folder', 'servers'];
    expect(differing.toSorted()).toEqual(own);
    expect(fromCompose.cluster.link.host).toBe(fromChart.cluster.link.host);
    expect(deploymentOf(manifests).spec?.replicas).toBe(
      Object.keys(compose).filter((name) => name.startsWith('gateway-')).length,
    );
    const redis = containerOf(manifests, 'gw-mcp-gangway-redis');
    expect(redis.command).toEqual(compose.redis.command);
    expect(redis.image).toBe(compose.redis.image.replace(/@.*/, ''));
  });

  it('probe with mcp-gangway health, as compose does', async () => {
    const container = containerOf(await render());
    const health = ['node', '/app/dist/main.js', 'health'];
    expect(container.startupProbe?.exec?.command).toEqual(health);
    expect(container.livenessProbe?.exec?.command).toEqual(health);
    expect(container.readinessProbe?.exec?.command).toEqual([...health, '--ready']);
  });

  it('[S22] run no root, and write only to what is mounted for it', async () => {
    const manifests = await render();
    for (const { spec } of manifests.filter(({ kind }) => kind === 'Deployment') as (Deployment | StatefulSet)[]) {
      const pod = spec?.template.spec;
      expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(pod?.automountServiceAccountToken).toBe(false);
      expect(pod?.enableServiceLinks).toBe(false);
      for (const { securityContext } of pod?.containers ?? [])
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  it('let only gateways reach Redis, and only labelled pods reach the gateways', async () => {
    const policies = (await render()).filter(({ kind }) => kind === 'NetworkPolicy') as NetworkPolicy[];
    const rules = Object.fromEntries(policies.map(({ metadata, spec }) => [metadata?.name, spec?.ingress?.[0]?.from]));
    expect(rules['gw-mcp-gangway-redis']?.[0]?.podSelector?.matchLabels).toHaveProperty(
      ['app.kubernetes.io/component'],
      'gateway',
    );
    expect(rules['gw-mcp-gangway']).toEqual([
      { namespaceSelector: {}, podSelector: { matchLabels: { 'mcp-gangway/client': 'true' } } },
    ]);
  });
});

describe('a value', () => {
  it('leaves the number of pods to the autoscaler', async () => {
    expect(deploymentOf(await render({ 'autoscaling.enabled': true })).spec).not.toHaveProperty('replicas');
  });

  it('gives a pod the time for preStop and for its drain', async () => {
    const manifests = await render({ drainSeconds: 100, preStopSeconds: 20 });
    expect(deploymentOf(manifests).spec?.template.spec?.terminationGracePeriodSeconds).toBe(125);
    expect(configOf(configurationOf(manifests)).timeouts.drainMs).toBe(100_000);
  });

  it('names the Redis in the configuration, and its Secret is a file and no variable', async () => {
    const manifests = await render(everything);
    expect(configOf(configurationOf(manifests)).cluster.redis).toBe(redisUrl);
    const variables = containerOf(manifests).env?.map(({ name }) => name);
    expect(variables).toEqual([
      'GANGWAY_PACKAGES_FOLDER',
      'GANGWAY_CLUSTER_LINK_ADDRESS',
      'GANGWAY_LISTEN_ADMIN_HOST',
      'TOKEN',
    ]);
    const { volumes } = deploymentOf(manifests).spec?.template.spec ?? {};
    expect(volumes?.find(({ name }) => name === 'redis')?.secret).toEqual({
      secretName: 'redis',
      defaultMode: 0o440,
      items: [{ key: 'redis-url', path: 'redis-url' }],
    });
    expect(configOf(configurationOf(await render())).cluster.redis).toBe('redis://gw-mcp-gangway-redis:6379');
    const other = { 'redis.enabled': false, 'redis.url': 'redis://other:6379' };
    expect(configOf(configurationOf(await render(other))).cluster.redis).toBe('redis://other:6379');
  });

  it('takes a text for the command of a server, such as the name of a package', async () => {
    const values = {
      servers: { git: 'uvx:mcp-server-git --repository /x', every: '@scope/name', old: { command: 'node' } },
    };
    const { servers } = configOf(configurationOf(await render(values)));
    expect(servers).toMatchObject([
      { name: 'every', package: { registry: 'npm', name: '@scope/name' } },
      { name: 'git', package: { registry: 'pypi', name: 'mcp-server-git', args: ['--repository', '/x'] } },
      { name: 'old', command: 'node' },
    ]);
  });

  it('replaces the servers of the defaults instead of adding to them', async () => {
    const { servers } = configOf(configurationOf(await render({ servers: { one: { command: 'node' } } })));
    expect(servers.map(({ name }) => name)).toEqual(['one']);
  });

  it('of the configuration rolls the pods out', async () => {
    const sumOf = async (values: object) =>
      deploymentOf(await render({ ...values })).spec?.template.metadata?.annotations?.['checksum/config'];
    expect(await sumOf({ config: { timeouts: { sessionIdle: '5m' } } })).not.toBe(await sumOf({}));
  });

  it('puts the host names of the Ingress and of the route into the allowed ones', async () => {
    const { listen } = configOf(configurationOf(await render(everything)));
    expect(listen.allowedHosts).toEqual(
      expect.arrayContaining(['mcp.example.com', 'mcp.example.org', 'gw-mcp-gangway.tools']),
    );
  });

  it.each([
    ['an unknown name', { replicas: 2 }, /additional properties 'replicas'/],
    ['no gateway', { replicaCount: 0 }, /replicaCount/],
    ['a password in redis.url', { 'redis.enabled': false, 'redis.url': 'redis://:secret@redis:6379' }, /redis\/url/],
    ['two Redis', { 'redis.url': 'redis://other:6379' }, /redis\.enabled installs a Redis/],
    ['several gateways without Redis', { 'redis.enabled': false }, /Several gateways need a Redis/],
    ['a monitor without metrics', { 'metrics.podMonitor.enabled': true }, /needs metrics\.enabled/],
    ['a route without a Gateway', { 'route.enabled': true }, /needs route\.parentRefs/],
    ['an Ingress without a host', { 'ingress.enabled': true }, /needs ingress\.hosts/],
    ['servers in config', { config: { mcpServers: {} } }, /value servers/],
    ['a range upside down', { 'autoscaling.minReplicas': 9 }, /minReplicas must not be larger/],
  ])('is refused if it is wrong: %s', async (_name, values, message) => {
    await expect(render(values as Record<string, unknown>)).rejects.toThrow(message);
  });
});

const notesOf = async (values: Readonly<Record<string, unknown>> = {}): Promise<string> => {
  const output = await helmWithChart('install', values, '--dry-run=client');
  return output.slice(output.indexOf('NOTES:'));
};

describe('what helm says after the installation', () => {
  it('is how to try it, and that no key is needed; and helm lint finds nothing', async () => {
    await helm('lint', '--strict', chart);
    const notes = await notesOf();
    expect(notes).toContain('http://gw-mcp-gangway.tools:8080/mcp');
    expect(notes).toContain('mcp-gangway check http://localhost:8080/mcp\n');
    expect(notes).toContain('WARNING: Clients need no key.');
    expect(notes).not.toContain('WARNING: The NetworkPolicy');
  });

  it('is a check with a key and with the name of a server, where both are needed', async () => {
    const { servers } = everything;
    const notes = await notesOf({ servers, 'auth.existingSecret': 'keys' });
    expect(notes).toContain("mcp-gangway check --header '${file:alice.txt}' http://localhost:8080/git/mcp\n");
    expect(notes).not.toContain('WARNING: Clients');
  });

  it.each([
    ['Ingress', { 'ingress.enabled': true, 'ingress.hosts': ['mcp.example.com'] }],
    ['Gateway', { 'route.enabled': true, 'route.parentRefs': [{ name: 'public' }] }],
  ])('is that the controller must be allowed: %s', async (kind, values) => {
    expect(await notesOf(values)).toContain(`WARNING: The NetworkPolicy keeps the controller of your ${kind} from`);
    const clients = { 'networkPolicy.clients': everything['networkPolicy.clients'] };
    expect(await notesOf({ ...values, ...clients })).not.toContain('WARNING: The NetworkPolicy');
  });
});

it('accepts the values of the recipe, and allows the proxies of its Gateway', async () => {
  const recipe = readFileSync(`${root}docs/recipes/kubernetes.md`, 'utf8');
  const [, values = ''] = /^```yaml values\.yaml\n(.*?)^```$/ms.exec(recipe) ?? [];
  const manifests = await render(parse(values));
  expect(await typeFaults(manifests.filter((manifest) => !isCustom(manifest)))).toBe('');
  const policy = manifests.find(({ kind }) => kind === 'NetworkPolicy') as NetworkPolicy;
  expect(JSON.stringify(policy.spec?.ingress)).toContain('"kubernetes.io/metadata.name":"gateways"');
  expect(manifests.map(({ metadata }) => metadata.name)).toContain('gw-mcp-gangway');
});

function imageEnvironment(): Record<string, string> {
  const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8').replaceAll('\\\n', ' ');
  const [, text = ''] = /^ENV (.*)$/m.exec(dockerfile) ?? [];
  return Object.fromEntries(text.split(/\s+/).map((pair) => pair.split(/=(.*)/s, 2) as [string, string]));
}

function configurationOf(manifests: readonly Manifest[]) {
  const container = containerOf(manifests);
  const map = manifests.find(({ kind }) => kind === 'ConfigMap') as ConfigMap;
  const given = container.env?.map(({ name, value }) => [name, value ?? valueOfReference(name)] as const) ?? [];
  const files = new Map([
    ['/etc/mcp-gangway/gangway.json', map.data?.['gangway.json']],
    ['/etc/mcp-gangway-secret/keys.json', JSON.stringify([{ name: 'alice', sha256: 'a'.repeat(64) }])],
    ['/etc/mcp-gangway-redis/redis-url', `${redisUrl}\n`],
  ]);
  return readConfiguration({
    argv: container.args ?? [],
    env: { ...imageEnvironment(), ...Object.fromEntries(given) },
    readFile: (path) => files.get(path) ?? expect.fail(`${path} is not mounted`),
  });
}

function valueOfReference(name: string): string {
  return name === 'GANGWAY_CLUSTER_LINK_ADDRESS' ? '10.1.2.3' : 'text';
}

function configOf(configuration: ReturnType<typeof readConfiguration>): GatewayConfig {
  if (!('config' in configuration)) throw new Error(JSON.stringify(configuration));
  return configuration.config;
}

function deploymentOf(manifests: readonly Manifest[], name = 'gw-mcp-gangway'): Deployment {
  return manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name) as Deployment;
}

function containerOf(manifests: readonly Manifest[], name?: string): Container {
  return deploymentOf(manifests, name).spec?.template.spec?.containers[0] ?? expect.fail('no container');
}
