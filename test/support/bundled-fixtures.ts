import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';

const fixtures = join(import.meta.dirname, '../fixtures');

/** How each server begins. The first line runs before its snapshot is taken. */
const servers = {
  everything: `
    import { createEverythingServer } from './everything/server.mjs'; createEverythingServer();
    import { startEverything as start } from './everything/start.mjs';`,
  modern: `
    import { createModernServer } from './modern/server.mjs'; createModernServer({});
    import { startModern as start } from './modern/start.mjs';`,
};

/**
 * Makes one folder for all temporary files of this run, which goes with it, also where a test fails or a worker is killed.
 * First, it removes those of runs that were killed themselves. Its name has the id of this process, and is short, since
 * paths of sockets must be.
 */
async function makeTemporaryFolder(parent: string): Promise<string> {
  for (const name of await readdir(parent)) {
    const [, pid] = /^gw-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(parent, name), { recursive: true, force: true });
  }
  const folder = await mkdtemp(join(parent, `gw-${process.pid}-`));
  await chmod(folder, 0o1777); // some servers run as another user
  process.env['TMPDIR'] = folder;
  return folder;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Sets the environment of all tests, and prepares the servers that most tests start, once for each run: as a snapshot of
 * Node.js with all modules loaded, a server starts in a third of the processor time, and in one file in half of it. Node.js takes
 * no snapshot of a server on HTTP. `gateway.ts` and `remote-server.ts` find them by `TEST_FIXTURES`.
 */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default async function bundleFixtures(): Promise<() => Promise<void>> {
  const parent = tmpdir();
  const temporary = await makeTemporaryFolder(parent);
  const folder = join(temporary, 'fixtures');
  await mkdir(folder);
  await Promise.all([
    ...Object.entries(servers).map(([name, code]) => takeSnapshot(folder, `${name}-server`, code)),
    build({
      ...{
        entryPoints: [join(fixtures, '..', 'integration', 'remote-server.mjs')],
        outfile: join(folder, 'remote-server.cjs'),
      },
      ...oneFile,
    }),
    bundleGateway(),
  ]);
  process.env['TEST_FIXTURES'] = folder;
  process.env['TEST_GATEWAY'] = gatewayFile;
  // Gateways that run side by side would meet in the directory of this user.
  process.env['GANGWAY_REPLAY_STORE'] = 'memory';
  // A second run in this process, of files that failed, makes a folder of its own.
  return async () => {
    process.env['TMPDIR'] = parent;
    await rm(temporary, { recursive: true, force: true });
  };
}

const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

/** Beside the packages, which it imports. */
const gatewayFile = fileURLToPath(new URL('../../node_modules/.gangway-tests/gateway.mjs', import.meta.url));

/** The parts of a gateway that runs in the process of a test. What it reads beside itself is in `dist`. */
const bundleGateway = () =>
  build({
    entryPoints: [join(import.meta.dirname, 'gateway-parts.ts')],
    outfile: gatewayFile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: Object.keys({ ...dependencies, ...optionalDependencies }),
    define: { 'import.meta.url': JSON.stringify(new URL('../../dist/start.cjs', import.meta.url).href) },
  });

const oneFile = { bundle: true, platform: 'node', format: 'cjs', minifySyntax: true, minifyWhitespace: true } as const;

async function takeSnapshot(folder: string, name: string, code: string): Promise<void> {
  const bundle = join(folder, `${name}.mjs`);
  const main = `import { startupSnapshot } from 'node:v8'; startupSnapshot.setDeserializeMainFunction(start);`;
  await build({
    stdin: { contents: code + main, resolveDir: fixtures },
    outfile: bundle,
    ...oneFile,
  });
  await promisify(execFile)(process.execPath, [
    '--snapshot-blob',
    join(folder, `${name}.blob`),
    '--build-snapshot',
    bundle,
  ]);
}
