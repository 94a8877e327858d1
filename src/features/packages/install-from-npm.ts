import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { RunTool } from '../../app/features/servers.ts';
import type { PackageRequest } from '../../config/servers/package-request.ts';
import { isObject } from '../../core/util/is-object.ts';
import { lastLines, PackageError } from './package-error.ts';
import type { Pin } from './pin.ts';

/** What an installer has put into a folder. */
export type Installed = Pick<Pin, 'version' | 'programs'>;

/** `npm` with the options of every installation. It asks nothing, and tells of faults only. */
const install = ['install', '--no-audit', '--no-fund', '--no-progress', '--omit=dev', '--loglevel=error'];

/** Without a network, npm would otherwise say so only after minutes. */
const retries = ['--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=4000'];

/** Installs a package of npm into an empty folder. Rejects with a `PackageError`. */
export async function installFromNpm(
  folder: string,
  { name, wanted, runsScripts }: PackageRequest,
  run: RunTool,
): Promise<Installed> {
  // Without it, npm would look for a project in the folders above.
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
  const scripts = runsScripts ? [] : ['--ignore-scripts'];
  const args = [...install, ...retries, ...scripts, '--prefix', folder, '--', `${name}@${wanted ?? 'latest'}`];
  const ended = await run({ command: 'npm', args, cwd: folder });
  if (ended === 'not-found')
    throw new PackageError(`npm was not found in PATH, and ${name} is a package of npm. Install Node.js with npm.`);
  if (ended.exitCode !== 0) throw explain(ended.output, name, wanted);
  const inside = join('node_modules', name);
  const { version, bin } = readManifest(join(folder, inside, 'package.json'));
  return { version, programs: programsOf(bin, name, inside) };
}

function readManifest(path: string): { readonly version: string; readonly bin: unknown } {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as unknown;
  const { version, bin } = isObject(manifest) ? manifest : {};
  return { version: typeof version === 'string' ? version : 'unknown', bin };
}

/** The programs that a package declares. One text is a program with the name of the package. */
function programsOf(bin: unknown, name: string, inside: string): Record<string, string> {
  const all = typeof bin === 'string' ? { [unscoped(name)]: bin } : isObject(bin) ? bin : {};
  return Object.fromEntries(
    Object.entries(all).flatMap(([program, path]) =>
      // A path may not lead out of the package.
      typeof path === 'string' ? [[program, join(inside, normalize(`/${path}`))]] : [],
    ),
  );
}

/** The name of a package without its scope. */
export const unscoped = (name: string): string => name.slice(name.lastIndexOf('/') + 1);

const unreachable =
  'npm cannot reach its registry. Check the network of this machine (HTTPS_PROXY, npm_config_registry). Without a network, packages start that were installed before.';

/** What the codes of npm mean, each with a remedy. */
const meanings: Readonly<Record<string, string>> = {
  E401: 'The registry of npm requires a login. Put its token into the .npmrc of the user that runs the gateway.',
  E403: 'The registry of npm refuses the package. Its owner must give you access.',
  EACCES: 'npm may not write a file. Check the folder of the packages and the cache of npm (~/.npm).',
  EROFS:
    'npm cannot write to a file system that is read-only. Check the folder of the packages and the cache of npm (~/.npm).',
  ENOSPC: 'The disk is full. Make room in the folder of the packages.',
  EBADENGINE: 'The package needs another version of Node.js.',
  ...Object.fromEntries(
    ['ENOTFOUND', 'ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH'].map((code) => [
      code,
      unreachable,
    ]),
  ),
};

function explain(output: string, name: string, wanted: string | undefined): PackageError {
  const code = /^npm (?:error|ERR!) code (\w+)/m.exec(output)?.[1] ?? '';
  const lines = lastLines(output).filter((line) => !/^npm (?:error|ERR!) A complete log|_logs\//.test(line));
  const known =
    code === 'E404'
      ? `npm has no package ${name}. Correct its name.`
      : code === 'ETARGET'
        ? `The package ${name} has no version ${wanted ?? 'latest'}. Correct the version.`
        : meanings[code];
  return new PackageError(known ?? `npm could not install ${name}. Correct the cause that its output names.`, lines);
}
