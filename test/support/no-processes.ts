import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

/** For `npm run test:fast`: a test that starts a process fails, and so belongs to the project `processes` (vitest.config.ts). */
for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const)
  Object.assign(childProcess, {
    [name]: (file: string) => {
      throw new Error(`A fast test starts ${file}. Add the test to "processes" in vitest.config.ts.`);
    },
  });
syncBuiltinESMExports();
