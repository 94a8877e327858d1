import { defineConfig } from 'vitest/config';
import { ownPackages } from '../support/own-packages.ts';

/** `node test/run.mjs redis-failures`: not one of the projects of the checkout's configuration, because it takes minutes. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  resolve: { alias: ownPackages },
  test: {
    name: 'redis-failures',
    include: ['test/redis-failures/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
  },
});
