import { expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

interface ServerReport {
  readonly name: string;
  readonly last?: { readonly outcome: string; readonly reason?: string; readonly why?: string };
}

test('the health of servers shows whether they have started in a view', async () => {
  const servers = {
    good: serverEntry(everythingFixture),
    bad: serverEntry([process.execPath, '-e', 'process.exit(3)']),
  };
  const { args } = await writeViewFile(servers, { view: ['*'] });
  const { baseUrl } = await startGateway({ args });
  const lastOf = async (server: string): Promise<ServerReport['last']> => {
    const report = (await (await fetch(`${baseUrl}/readyz`)).json()) as { servers: ServerReport[] };
    return report.servers.find(({ name }) => name === server)?.last;
  };
  await initialize(`${baseUrl}/view/mcp`);
  expect(await lastOf('good')).toMatchObject({ outcome: 'started' });
  expect(await lastOf('bad')).toMatchObject({ outcome: 'failed', reason: 'exited' });
  expect(await lastOf('view')).toMatchObject({ outcome: 'failed', why: 'bad: The server exited with code 3.' });
});
