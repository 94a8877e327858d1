import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration, so that `npm test` and CI need no Docker. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'docker',
    include: ['test/docker/**/*.test.ts'],
    // One engine, which they would keep busy for each other.
    fileParallelism: false,
    // The lab's engine copies the whole image for each container; that takes 5 to 20 s.
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});
