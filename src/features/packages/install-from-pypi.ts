import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunTool, ToolEnd } from '../../app/features/servers.ts';
import type { PackageRequest } from '../../config/servers/package-request.ts';
import type { Installed } from './install-from-npm.ts';
import { lastLines, PackageError } from './package-error.ts';

/** The folder of the virtual environment. */
const environmentFolder = 'venv';
const python = join(environmentFolder, 'bin', 'python');

/**
 * Installs a package of PyPI into an empty folder, in a virtual environment of its own: with uv, or with Python's own venv
 * and pip where there is no uv. Rejects with a `PackageError`.
 */
export async function installFromPypi(folder: string, request: PackageRequest, run: RunTool): Promise<Installed> {
  const { name, extras, wanted, runsScripts } = request;
  const what = `${name}${extras}${wanted === undefined ? '' : `==${wanted}`}`;
  // Only packages in source form run code of their authors.
  const onlyWheels = runsScripts ? [] : ['--only-binary', ':all:'];
  const failIfNot = (ended: ToolEnd, tool: string): void => {
    if (ended.exitCode !== 0) throw explain(ended.output, tool, name, wanted);
  };
  const made = await run({ command: 'uv', args: ['venv', '--relocatable', environmentFolder], cwd: folder });
  if (made !== 'not-found') {
    failIfNot(made, 'uv');
    const args = ['pip', 'install', '--no-progress', '--python', python, ...onlyWheels, '--', what];
    const installed = await run({ command: 'uv', args, cwd: folder });
    if (installed !== 'not-found') failIfNot(installed, 'uv');
    return findPrograms(folder, name);
  }
  const byPython = await run({ command: 'python3', args: ['-m', 'venv', environmentFolder], cwd: folder });
  if (byPython === 'not-found')
    throw new PackageError(
      `Neither uv nor python3 was found in PATH, and ${name} is a package of PyPI. Install uv, or use the image of the gateway with uv.`,
    );
  failIfNot(byPython, 'python3 -m venv');
  const quiet = ['--no-input', '--disable-pip-version-check', '--quiet'];
  const args = ['-m', 'pip', 'install', ...quiet, ...onlyWheels, '--', what];
  // pip reads its own variables, not those of uv.
  const installed = await run({ command: join(folder, python), args, cwd: folder, as: 'pip' });
  if (installed !== 'not-found') failIfNot(installed, 'pip');
  return findPrograms(folder, name);
}

/** PyPI compares names in this form. */
const normalized = (name: string): string => name.toLowerCase().replaceAll(/[-_.]+/g, '-');

/** Finds the version of a package, and the programs that it has put into the environment. */
function findPrograms(folder: string, name: string): Installed {
  const library = join(folder, environmentFolder, 'lib');
  for (const version of readdirSync(library)) {
    const packages = join(library, version, 'site-packages');
    for (const entry of readdirSync(packages)) {
      const [, itsName = '', itsVersion = ''] = /^(.+?)-([^-]+)\.dist-info$/.exec(entry) ?? [];
      if (normalized(itsName) !== normalized(name)) continue;
      const record = readFileSync(join(packages, entry, 'RECORD'), 'utf8');
      const files = [...record.matchAll(/^"?(?:\.\.\/)+bin\/([^,"/]+)"?,/gm)].map(([, file = '']) => file);
      const programs = files.map((file) => [file, join(environmentFolder, 'bin', file)] as const);
      return { version: itsVersion, programs: Object.fromEntries(programs) };
    }
  }
  throw new PackageError(
    `The installation of ${name} has left no such package. Report this as an error of mcp-gangway.`,
  );
}

function explain(output: string, tool: string, name: string, wanted: string | undefined): PackageError {
  const lines = lastLines(output);
  return new PackageError(
    meaningOf(output, name, wanted) ?? `${tool} could not install ${name}. Correct the cause that its output names.`,
    lines,
  );
}

function meaningOf(output: string, name: string, wanted: string | undefined): string | undefined {
  if (/ensurepip is not available|No module named (?:venv|pip|ensurepip)/.test(output))
    return 'This Python cannot make virtual environments. Install uv, or the package python3-venv of the system.';
  if (
    /dns error|failed to lookup|Could not connect|Connection refused|NewConnectionError|timed out|tcp connect error|Network is unreachable/i.test(
      output,
    )
  )
    return 'The index of Python packages cannot be reached. Check the network of this machine (HTTPS_PROXY, UV_INDEX_URL, PIP_INDEX_URL). Without a network, packages start that were installed before.';
  if (/was not found in the package registry|No matching distribution|there (?:is|are) no versions? of/i.test(output))
    return wanted === undefined
      ? `PyPI has no package ${name} for this Python. Correct the name, or use another Python.`
      : `PyPI has no version ${wanted} of ${name} for this Python. Correct the name or the version.`;
  return undefined;
}
