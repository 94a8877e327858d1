import { defineConfig } from 'vitest/config';

/** The tests of the rooms without sockets and processes, for `node test/run.mjs coverage` and `node test/run.mjs mutants`. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    include: ['test/{protocol,call,session}/**/*.test.ts'],
    // These two guard times and sources, and no behaviour of the code.
    exclude: ['test/protocol/regular-expressions.test.ts', 'test/protocol/json/worst-inputs.test.ts'],
    testTimeout: 20_000,
    coverage: {
      provider: 'v8',
      include: ['src/protocol/**/*.ts', 'src/call/**/*.ts', 'src/session/{inbound,outbound}/**/*.ts'],
      reporter: ['text', 'json-summary'],
      reportsDirectory: 'coverage',
    },
  },
});
