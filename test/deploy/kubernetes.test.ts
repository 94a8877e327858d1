import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { Service } from 'kubernetes-types/core/v1.d.ts';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfiguration } from '../../src/config/config.ts';
import { gatewayOptions } from '../../src/config/options/options.ts';
import { root } from '../support/gateway.ts';
import { type Manifest, typeFaults } from '../support/kubernetes-types.ts';

/** deploy/kubernetes: that its objects are what Kubernetes knows, fit to each other, and to what the gateway does. */

const folder = `${root}deploy/kubernetes`;
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const kustomization: {
  namespace: string;
  resources: string[];
  configMapGenerator: [{ name: string; files: string[] }];
  images: [{ name: string; newTag: string }];
} = parse(read('kustomization.yaml'));

const manifests: Manifest[] = kustomization.resources.map((name) => parse(read(name)));
const the = <T>(kind: string) => manifests.find((manifest) => manifest.kind === kind) as T;

const deployment = the<Deployment>('Deployment');
const pod = deployment.spec?.template.spec;
const [container] = pod?.containers ?? [];
const labels = deployment.spec?.template.metadata?.labels;
const wanted = { 'app.kubernetes.io/name': 'mcp-gangway' };

describe('what Kubernetes is given', () => {
  it('has no field that its API does not know, and no value of another type', async () => {
    expect(await typeFaults(manifests)).toBe('');
  }, 120_000);

  it('would not pass with a field that is misspelt or of another type', async () => {
    const misspelt = structuredClone(deployment);
    Object.assign(misspelt.spec?.template.spec ?? {}, { terminationGracePeriod: 35 });
    expect(await typeFaults([misspelt as Manifest])).toContain('terminationGracePeriod');
    const mistyped = structuredClone(deployment);
    Object.assign(mistyped.spec ?? {}, { replicas: '2' });
    expect(await typeFaults([mistyped as Manifest])).toContain(`'string' is not assignable to type 'number'`);
  }, 120_000);

  it('is one object a file, all of them in one namespace that is made with them', () => {
    for (const name of [...kustomization.resources, ...kustomization.configMapGenerator[0].files]) {
      expect(existsSync(join(folder, name)), name).toBe(true);
    }
    for (const name of kustomization.resources) expect(parseAllDocuments(read(name))).toHaveLength(1);
    expect(the<Manifest>('Namespace').metadata.name).toBe(kustomization.namespace);
    expect(manifests.map(({ metadata }) => metadata.namespace)).toEqual(manifests.map(() => undefined));
  });

  it('is selected by its labels everywhere', () => {
    expect(labels).toEqual(wanted);
    expect(deployment.spec?.selector.matchLabels).toEqual(wanted);
    expect(pod?.topologySpreadConstraints?.map(({ labelSelector }) => labelSelector?.matchLabels)).toEqual([wanted]);
    expect(the<Service>('Service').spec?.selector).toEqual(wanted);
    expect(the<PodDisruptionBudget>('PodDisruptionBudget').spec?.selector?.matchLabels).toEqual(wanted);
    expect(the<NetworkPolicy>('NetworkPolicy').spec?.podSelector.matchLabels).toEqual(wanted);
  });

  // Not part of CI, which has no kubectl.
  it.runIf(isThere('kubectl'))('is what kubectl makes of the kustomization', async () => {
    const { stdout } = await promisify(execFile)('kubectl', ['kustomize', folder]);
    const made: Manifest[] = parseAllDocuments(stdout).map((document) => document.toJS());
    expect(made.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', ...manifests.map(({ kind }) => kind)].sort());
    const used = (made.find(({ kind }) => kind === 'Deployment') as Deployment).spec?.template.spec;
    const config = made.find(({ kind }) => kind === 'ConfigMap');
    expect(used?.volumes?.find(({ name }) => name === 'config')?.configMap?.name).toBe(config?.metadata.name);
    expect(used?.containers[0]?.image).toBe(`mcp-gangway:${kustomization.images[0].newTag}`);
  });
});

describe('the gateway in it', () => {
  it('accepts its configuration, with API keys and Redis', () => {
    const files = new Map([
      [join(mountOf('config'), 'gangway.json'), read('gangway.json')],
      [join(mountOf('secret'), 'keys.json'), JSON.stringify([{ name: 'alice', sha256: 'a'.repeat(64) }])],
      [join(mountOf('secret'), 'redis-url'), 'redis://:password@redis:6379\n'],
    ]);
    const configuration = readConfiguration({
      argv: container?.args ?? [],
      env: { GANGWAY_HOST: '0.0.0.0' },
      readFile: (path) => files.get(path) ?? expect.fail(`${path} is not mounted`),
    });
    expect(configuration).toMatchObject({ ok: true, warnings: [] });
    if (!('config' in configuration)) throw new Error('not a gateway');
    const { config } = configuration;
    expect(config.cluster.redis).toBe('redis://:password@redis:6379');
    expect(config.auth.required).toBe(true);
    expect(config.auth.apiKeysFile).toBe(join(mountOf('secret'), 'keys.json'));
    // What clients in the cluster send as Host.
    const { name } = the<Manifest>('Service').metadata;
    const full = `${name}.${kustomization.namespace}.svc.cluster.local`;
    for (const parts of [1, 2, 3, 5])
      expect(config.listen.allowedHosts).toContain(full.split('.').slice(0, parts).join('.'));
  });

  it('is the version of this checkout', () => {
    expect(kustomization.images[0].name).toBe(container?.image);
    expect(kustomization.images[0].newTag).toBe(JSON.parse(readFileSync(`${root}package.json`, 'utf8')).version);
  });

  it('is reached and probed on its port', () => {
    const [port] = container?.ports ?? [];
    expect(port).toEqual({ name: 'http', containerPort: gatewayOptions.listen.port.default });
    expect(the<Service>('Service').spec?.ports?.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(the<NetworkPolicy>('NetworkPolicy').spec?.ingress?.[0]?.ports).toEqual([{ port: 'http' }]);
    const link = container?.ports?.find(({ name }) => name === 'link');
    const { cluster } = JSON.parse(read('gangway.json'));
    expect(link?.containerPort).toBe(cluster.link.port);
    const { ingress, egress } = the<NetworkPolicy>('NetworkPolicy').spec ?? {};
    const others = [{ podSelector: { matchLabels: wanted } }];
    expect(ingress?.[1]).toEqual({ from: others, ports: [{ port: 'link' }] });
    expect(egress?.[0]).toEqual({ to: others, ports: [{ port: 'link' }] });
    expect(container?.startupProbe?.httpGet).toEqual({ path: '/healthz', port: 'http' });
    expect(container?.livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'http' });
    expect(container?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' });
  });

  it('gets no variables of services, which could be taken for options', () => {
    expect(pod?.enableServiceLinks).toBe(false);
  });

  it('has the time for preStop and its drain before it is killed', () => {
    const [program, seconds] = container?.lifecycle?.preStop?.exec?.command ?? [];
    expect(program).toBe('sleep');
    const drainS = gatewayOptions.timeouts.drain.default / 1000;
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(seconds) + drainS + 5);
    // preStop has to last until the readiness of the others has been seen everywhere, and not only this one's.
    expect(Number(seconds)).toBeGreaterThanOrEqual(container?.readinessProbe?.periodSeconds ?? 10);
  });

  it('is never without another one on purpose', () => {
    expect(deployment.spec?.replicas).toBeGreaterThanOrEqual(2);
    expect(deployment.spec?.strategy?.rollingUpdate).toMatchObject({ maxUnavailable: 0 });
    expect(the<PodDisruptionBudget>('PodDisruptionBudget').spec?.maxUnavailable).toBe(1);
  });

  it('[S22] is not root, cannot become it, and writes to nothing but what is mounted for it', () => {
    expect(the<Manifest>('Namespace').metadata).toMatchObject({
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
    });
    expect(pod?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(pod?.automountServiceAccountToken).toBe(false);
    const writable = container?.volumeMounts?.filter(({ readOnly }) => readOnly !== true).map(({ name }) => name);
    expect(writable).toEqual(['tmp', 'home']);
    for (const name of writable ?? []) expect(volume(name)?.emptyDir?.sizeLimit).toBeDefined();
  });

  it('has its secrets from files of a Secret, and from nowhere else', () => {
    expect(container?.env).toBeUndefined();
    expect(container?.envFrom).toBeUndefined();
    const { secretName, items } = volume('secret')?.secret ?? {};
    expect(secretName).toBe('mcp-gangway');
    expect(items?.map(({ key, path }) => [key, path])).toEqual(['keys.json', 'redis-url'].map((name) => [name, name]));
    expect(volume('config')?.configMap?.name).toBe(kustomization.configMapGenerator[0].name);
  });
});

function volume(name: string) {
  return pod?.volumes?.find((one) => one.name === name);
}

function mountOf(name: string): string {
  return container?.volumeMounts?.find((mount) => mount.name === name)?.mountPath ?? expect.fail(`no mount of ${name}`);
}

function isThere(program: string): boolean {
  return spawnSync(program, ['--help'], { stdio: 'ignore' }).error === undefined;
}
