import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration, so that `npm test` and CI need no Prometheus. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'prometheus',
    include: ['test/prometheus/**/*.test.ts'],
    fileParallelism: false,
    // Alerts look back over what was scraped, once a second.
    testTimeout: 90_000,
    hookTimeout: 60_000,
  },
});
