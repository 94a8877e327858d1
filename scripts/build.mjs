// Builds dist from src: one file for what every gateway runs, and chunks for what only some need, such as the client of
// Redis. Node.js loads a file in a fraction of a millisecond and more: four hundred of them took most of a start. Libraries are
// not in it; who installs the package gets them as package.json says. Types are checked by `npm run types`.
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
// Where the code that reads them is: what is split off lies beside `main.js`.
cpSync('src/store/redis/scripts', 'dist/scripts', { recursive: true });
cpSync('src/console/page', 'dist/page', { recursive: true });
chmodSync('dist/main.js', 0o755);
