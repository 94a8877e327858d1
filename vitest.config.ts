import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'imports', include: ['test/imports.test.ts'] } },
      {
        test: {
          name: 'unit',
          include: [
            'test/{protocol,store,backend,session,modern,http,ops,app,contract,requirements,model,support}/**/*.test.ts',
          ],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/{integration,hardening,fault,resume,conformance,cluster}/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
