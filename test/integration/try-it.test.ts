import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { root, startGateway } from '../support/gateway.ts';
import { fixtureKinds, modernHttpKinds } from './server-kinds.ts';

const run = promisify(execFile);

// The line names the gateway, whatever the server: one of each era is enough.
test.each([...fixtureKinds.slice(0, 1), ...modernHttpKinds.slice(0, 1)])(
  'the printed line that tries $name lists its tools',
  async (kind) => {
    const server = await kind.ready();
    onTestFinished(() => server.stop());
    const { args, command } = server;
    const gateway = await startGateway({ args: [...args], command });
    onTestFinished(async () => {
      await gateway.stop();
    });
    const [, line = ''] = /^Try it: (.*)$/m.exec(gateway.stdout()) ?? [];
    const { stdout } = await run('sh', ['-c', line], { cwd: root });
    expect(stdout).toMatch(/^OK .*\b[1-9]\d* tools?\b/);
  },
);
