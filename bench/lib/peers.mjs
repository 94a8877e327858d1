// The peers from npm: bench/ is a package with a lock file of its own, installed when they are first asked for.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './command.mjs';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
export const peersModules = path.join(folder, 'node_modules');
const installLimitMs = 300_000;

/** Installs what bench/package-lock.json pins, without running any install script. Throws if that fails. */
export function installPeers() {
  if (existsSync(path.join(peersModules, '.package-lock.json'))) return;
  const { status, error } = spawnSync('npm', ['ci', '--ignore-scripts'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: installLimitMs,
  });
  if (status !== 0)
    throw new UsageError(`npm ci in bench failed (${error?.message ?? status}): peers come from the registry of npm`);
}

/** The installed version of a peer; undefined if it is not installed. */
export function peerVersion(name) {
  const file = path.join(peersModules, name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
}
