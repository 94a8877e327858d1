import { defineConfig } from 'vitest/config';
import { ownPackages } from '../support/own-packages.ts';

/** Not one of the projects of the checkout's configuration: it runs for as long as it is told. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  resolve: { alias: ownPackages },
  test: {
    name: 'soak',
    include: ['test/soak/soak.test.ts'],
    testTimeout: 0,
    hookTimeout: 120_000,
  },
});
