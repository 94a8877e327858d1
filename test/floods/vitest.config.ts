import { defineConfig } from 'vitest/config';

/** `node test/run.mjs floods`: not one of the projects of the checkout's configuration, because it takes a quarter of an hour. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'floods',
    include: ['test/floods/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
