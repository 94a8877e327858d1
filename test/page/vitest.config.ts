import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration: it needs a Chromium, which `.ci/run` installs. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'page',
    include: ['test/page/**/*.test.ts'],
    // One browser after the other: each takes a core.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
