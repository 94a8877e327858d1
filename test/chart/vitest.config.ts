import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration: it installs helm, which is 36 MB and for Linux on x64 only. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: { name: 'chart', include: ['test/chart/chart.test.ts'], testTimeout: 120_000, hookTimeout: 300_000 },
});
