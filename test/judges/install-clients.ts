import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installSuite } from '../conformance/suite.ts';

const run = promisify(execFile);

/** The package of the published clients. */
export const clientsFolder = fileURLToPath(new URL('clients', import.meta.url));

/** The package of the published servers. */
export const serversFolder = fileURLToPath(new URL('servers', import.meta.url));

/** Installs the published clients as the lock file says, and the Node.js that some of them need. */
export const installClients = (): Promise<void> => install(clientsFolder);

/** Installs the published servers as the lock file says, and the Node.js that some of them need. */
export const installServers = (): Promise<void> => install(serversFolder);

/** Where the servers of PyPI are: an environment for each. No page of theirs is a page of this project. */
const pythonFolder = fileURLToPath(new URL('../../node_modules/.judged/python', import.meta.url));

/** The path of a program that a package of PyPI brings. */
export const pythonProgram = (name: string, program: string): string => join(pythonFolder, name, 'bin', program);

/** True if this machine has `uv`, which installs the servers of PyPI. */
export const hasUv = await run('uv', ['--version']).then(
  () => true,
  () => false,
);

/**
 * Installs each server of PyPI into an environment of its own, because their requirements contradict each other.
 * An environment that is there stays: its folder has the name of the server, and its marker that of the version.
 */
export async function installPythonServers(
  servers: readonly { readonly name: string; readonly version: string; readonly with?: string }[],
): Promise<void> {
  await installSuite();
  for (const { name, version, with: other } of servers) {
    const wanted = [`${name}==${version}`, ...(other === undefined ? [] : [other])];
    const environment = join(pythonFolder, name);
    const marker = join(environment, 'installed.txt');
    if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted.join('\n')) continue;
    await run('uv', ['venv', '--clear', '--quiet', environment], { timeout: 300_000 });
    const python = join(environment, 'bin', 'python');
    await run('uv', ['pip', 'install', '--quiet', '--compile-bytecode', '--python', python, ...wanted], {
      timeout: 900_000,
    });
    writeFileSync(marker, wanted.join('\n'));
  }
}

async function install(folder: string): Promise<void> {
  await installSuite();
  if (!isInstalled(folder)) await run('npm', ['ci', '--ignore-scripts'], { cwd: folder, timeout: 900_000 });
}

/** True if the installed versions are those of the lock file: npm writes its own copy last. */
function isInstalled(folder: string): boolean {
  const [installed, wanted] = ['node_modules/.package-lock.json', 'package-lock.json'].map((name) =>
    join(folder, name),
  );
  return existsSync(`${installed}`) && statSync(`${installed}`).mtimeMs > statSync(`${wanted}`).mtimeMs;
}
