// Builds dist from src: one file for the code of every gateway, and chunks for optional code, such as the Redis client.
// Bundling shortens the start, which would otherwise mostly load hundreds of files. Libraries are not bundled: npm
// installs them from package.json. `npm run types` checks the types.
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

rmSync('dist', { recursive: true, force: true });
await build({
  // The store would be a chunk anyway; bench/scale.mjs needs its name.
  entryPoints: {
    main: 'src/main.ts',
    'redis-store': 'src/store/redis/redis-store.ts',
  },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  chunkNames: '[name]-[hash]',
  logLevel: 'warning',
});
// Next to the code that reads them: chunks are in the same folder as `main.js`.
cpSync('src/store/redis/scripts', 'dist/scripts', { recursive: true });
cpSync('src/console/page', 'dist/page', { recursive: true });
chmodSync('dist/main.js', 0o755);
