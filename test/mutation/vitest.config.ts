import { defineConfig } from 'vitest/config';
import { ownPackages } from '../support/own-packages.ts';

/** The tests of the rooms without sockets and processes, for `node test/run.mjs coverage` and `node test/run.mjs mutants`. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  resolve: { alias: ownPackages },
  test: {
    include: ['packages/json-scan/test/*.test.ts', 'test/core/{protocol,call,session}/**/*.test.ts'],
    // These two guard times and sources, and no behaviour of the code.
    exclude: ['test/core/protocol/regular-expressions.test.ts', 'packages/json-scan/test/worst-inputs.test.ts'],
    testTimeout: 20_000,
    coverage: {
      provider: 'v8',
      include: [
        'packages/json-scan/src/*.ts',
        'src/core/protocol/**/*.ts',
        'src/core/call/**/*.ts',
        'src/core/session/{inbound,outbound}/**/*.ts',
      ],
      reporter: ['text', 'json-summary'],
      reportsDirectory: 'coverage',
    },
  },
});
