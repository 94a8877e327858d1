// Adds missing platform packages to package-lock.json: optionalDependencies without an entry, because the registry that
// created the lock file does not serve them. `npm ci` of npm 11 refuses a lock file without them.
// Run it after any change of dependencies: node scripts/complete-lock.mjs
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.argv[2] ?? 'package-lock.json';
const systems = ['android', 'darwin', 'freebsd', 'linux', 'openbsd', 'openharmony', 'win32'];
const processors = ['arm64', 'x64', 'ia32', 'arm', 'loong64', 'ppc64', 'riscv64', 's390x'];

const lock = JSON.parse(readFileSync(file, 'utf8'));
let added = 0;
for (const [at, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] || lock.packages[`${at}/${key}`]) continue;
    lock.packages[key] = { version, ...platformOf(name), ...(entry.dev && { dev: true }), optional: true };
    added += 1;
  }
}
const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
process.stdout.write(`${added} platform packages added\n`);

/** The platform of a package, by the words of its name. */
function platformOf(name) {
  const words = name.split('/').at(-1).split('-');
  const os = systems.find((word) => words.includes(word));
  const cpu = processors.find((word) => words.includes(word));
  if (os === undefined || cpu === undefined) throw new Error(`${name} names no platform`);
  const isMusl = words.some((word) => word.startsWith('musl'));
  const isGlibc = os === 'linux' && words.some((word) => word.startsWith('gnu'));
  return { cpu: [cpu], os: [os], ...((isMusl || isGlibc) && { libc: [isMusl ? 'musl' : 'glibc'] }) };
}
