import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installSuite } from '../conformance/suite.ts';

const run = promisify(execFile);

/** The package of the published clients and servers. */
export const clientsFolder = fileURLToPath(new URL('clients', import.meta.url));

/** Installs the published clients and servers as the lock file says, and the Node.js that some of them need. */
export async function installClients(): Promise<void> {
  await installSuite();
  if (!isInstalled()) await run('npm', ['ci', '--ignore-scripts'], { cwd: clientsFolder, timeout: 600_000 });
}

/** True if the installed versions are those of the lock file: npm writes its own copy last. */
function isInstalled(): boolean {
  const [installed, wanted] = ['node_modules/.package-lock.json', 'package-lock.json'].map((name) =>
    join(clientsFolder, name),
  );
  return existsSync(`${installed}`) && statSync(`${installed}`).mtimeMs > statSync(`${wanted}`).mtimeMs;
}
