import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { root } from './gateway.ts';

/** An object of Kubernetes. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
}

/**
 * The compiler's errors for the manifests, as literals of types from the Kubernetes schemas. In literals the compiler
 * refuses unknown fields at any depth. Empty if all is well.
 */
export async function typeFaults(given: readonly Manifest[]): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'gangway-manifests-'));
  onTestFinished(() => rm(path, { recursive: true }));
  await symlink(`${root}node_modules`, join(path, 'node_modules'));
  const lines = given.map((manifest, at) => {
    const [group = '', version] = manifest.apiVersion.includes('/')
      ? manifest.apiVersion.split('/')
      : ['core', manifest.apiVersion];
    const module = `kubernetes-types/${group.split('.')[0]}/${version}`;
    return `export const m${at}: import('${module}').${manifest.kind} = ${JSON.stringify(manifest, null, 2)};`;
  });
  await writeFile(join(path, 'manifests.ts'), lines.join('\n'));
  const compile = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--types', '', 'manifests.ts'];
  return await promisify(execFile)(`${root}node_modules/.bin/tsc`, compile, { cwd: path }).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  );
}
