// Writes an SBOM of the libraries that the lock file names, as CycloneDX on stdout. `npm sbom --omit dev` alone leaves
// out libraries that development needs, too, so npm gets a lock file without the packages for development.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// The packages of this repository are part of the bundle, as its other sources are.
const {
  devDependencies: _development,
  workspaces: _packages,
  ...program
} = JSON.parse(readFileSync('package.json', 'utf8'));
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const isOwn = (path, { link }) => link === true || path.startsWith('packages/');
const kept = Object.entries(lock.packages).filter(
  ([path, entry]) => !entry.dev && !entry.devOptional && !isOwn(path, entry),
);
const { devDependencies: _inLock, workspaces: _inRoot, ...root } = lock.packages[''];

const folder = mkdtempSync(join(tmpdir(), 'sbom-'));
try {
  writeFileSync(join(folder, 'package.json'), JSON.stringify(program));
  const packages = { ...Object.fromEntries(kept), '': root };
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
  const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'];
  const sbom = execFileSync('npm', args, { cwd: folder, encoding: 'utf8' });
  const named = new Set(JSON.parse(sbom).components.map(({ name }) => name));
  const missing = Object.keys(program.dependencies).filter((name) => !named.has(name));
  if (missing.length > 0) throw new Error(`the SBOM lacks ${missing.join(', ')}`);
  process.stdout.write(sbom);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
