import { defineConfig } from 'vitest/config';

/** Not one of the projects of the checkout's configuration: it installs foreign packages, and takes minutes. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    name: 'judges',
    include: [
      'test/judges/{authorization,browser,clients,client-role,hosted,mongodb,server-role,mcp-remote-logins}.test.ts',
    ],
    globalSetup: 'test/judges/page.ts',
    // One judge after the other: some scenarios have short deadlines.
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
