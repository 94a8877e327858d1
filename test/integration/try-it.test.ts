import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { fixtureKinds, modernHttpKinds } from './server-kinds.ts';

const run = promisify(execFile);

test.each([...fixtureKinds, ...modernHttpKinds])('the printed line that tries $name lists its tools', async (kind) => {
  const server = await kind.ready();
  onTestFinished(() => server.stop());
  const { args, command } = server;
  const gateway = await startGateway({ args: [...args], command });
  onTestFinished(async () => {
    await gateway.stop();
  });
  const [, line = ''] = /^Try it.*:\n {2}(curl .*)$/m.exec(gateway.stdout()) ?? [];
  const { stdout } = await run('sh', ['-c', line]);
  const [head = '', body = ''] = stdout.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(JSON.parse(body).result.tools.length).toBeGreaterThan(0);
});
