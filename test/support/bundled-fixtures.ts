import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

/**
 * Sets the environment of all tests, and bundles the servers that most tests start, once for each run: with the SDK in one file, a server starts in half the
 * time. `gateway.ts` finds them by `TEST_FIXTURES`.
 */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default async function bundleFixtures(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-fixtures-'));
  await chmod(folder, 0o755); // some servers run as another user
  const require = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  await build({
    entryPoints: ['everything', 'modern'].map((name) =>
      join(import.meta.dirname, '..', 'fixtures', `${name}-server.mjs`),
    ),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: require },
    minifySyntax: true,
    minifyWhitespace: true,
  });
  process.env['TEST_FIXTURES'] = folder;
  // Gateways that run side by side would meet in the directory of this user.
  process.env['GANGWAY_REPLAY_STORE'] = 'memory';
  return () => rm(folder, { recursive: true, force: true });
}
