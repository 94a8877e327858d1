import { configDefaults, defineConfig } from 'vitest/config';
import { ownPackages } from '../support/own-packages.ts';

/** Not one of the projects of the checkout's configuration: it installs foreign packages, and takes minutes. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  resolve: { alias: ownPackages },
  test: {
    name: 'judges',
    include: ['test/judges/*.test.ts'],
    // Unit tests of what the judges share.
    exclude: [...configDefaults.exclude, 'test/judges/judge.test.ts'],
    globalSetup: 'test/judges/page.ts',
    // One judge after the other: some scenarios have short deadlines.
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
  },
});
