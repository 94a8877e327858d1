import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration: it takes its time, and a machine that has little else to do. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'many',
    include: ['test/many/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 400_000,
  },
});
