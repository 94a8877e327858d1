import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
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
