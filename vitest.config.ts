import { configDefaults, defineConfig } from 'vitest/config';

/** Every client on every server. */
const tables = ['test/integration/{cross,server-kinds,http-servers,modern-sdk-clients}.test.ts'];

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'imports', include: ['test/imports.test.ts'] } },
      {
        test: {
          name: 'unit',
          include: [
            'test/{protocol,store,backend,session,modern,era,http,ops,app,contract,requirements,model,support}/**/*.test.ts',
          ],
          testTimeout: 20_000,
        },
      },
      {
        // Tables of features: nothing in them waits for a time to pass, so that they run beside each other and the unit tests.
        test: { name: 'tables', include: tables, testTimeout: 60_000, hookTimeout: 60_000 },
      },
      {
        test: {
          name: 'integration',
          include: ['test/{integration,hardening,fault,resume,conformance,cluster}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...tables],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
