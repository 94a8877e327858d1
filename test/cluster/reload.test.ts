import { expect, test } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { startCluster } from '../support/cluster.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { showsVariables, variableOf } from '../support/shown-variables.ts';
import { waitFor } from '../support/wait-for.ts';

const [command, ...args] = showsVariables;

/** Other arguments make it another server to its sessions, not only another value of a variable. */
const textOf = (VALUE: string) =>
  JSON.stringify({ mcpServers: { shown: { command, args: [...args, VALUE], env: { VALUE } } } });

const leaseMs = 2_000;
const times = ['--cluster.lease', `${leaseMs}ms`];

test('[P4] instances that read a changed file go on serving, and take over, sessions of the server as it was', async () => {
  const file = await changingFile('gangway.json', textOf('old'));
  const cluster = await startCluster({ instances: 2, args: ['--config', file.path, ...times] });
  const urlOf = (instance: number) => `${cluster.instances[instance]?.baseUrl}/mcp`;
  const wasRead = (instance: number) =>
    cluster.instances[instance]?.logs().some(({ changed }) => String(changed) === 'shown') === true;
  const session = await initialize(urlOf(0));
  const shown = (of: Session, instance: number) => variableOf(of.at(urlOf(instance)), 'VALUE');
  const before = await shown(session, 1);
  expect(before.value).toBe('old');

  await file.write(textOf('new'));
  await waitFor(() => wasRead(0) && wasRead(1), { what: 'both to read the file' });
  expect(await shown(session, 0)).toEqual(before);
  expect(await shown(session, 1)).toEqual(before);
  const other = await initialize(urlOf(1));
  expect((await shown(other, 0)).value).toBe('new');

  const late = await cluster.restart(1); // which never knew the server as it was
  expect((await session.at(`${late.baseUrl}/mcp`).request('ping')).json.error.data.reason).toBe('other_configuration');
  expect(await shown(session, 0)).toEqual(before);
});

test('[P3] a session of the server as it was is taken over from an instance that is killed', async () => {
  const file = await changingFile('gangway.json', textOf('old'));
  const cluster = await startCluster({ instances: 2, args: ['--config', file.path, ...times] });
  const urlOf = (instance: number) => `${cluster.instances[instance]?.baseUrl}/mcp`;
  const session = await initialize(urlOf(0));
  const before = await variableOf(session.at(urlOf(1)), 'VALUE');
  await file.write(textOf('new'));
  for (const { logs } of cluster.instances)
    await waitFor(() => logs().some(({ changed }) => String(changed) === 'shown'), { what: 'the file to be read' });
  await cluster.kill(0);
  const after = await waitFor(() => variableOf(session.at(urlOf(1)), 'VALUE').catch(() => undefined), {
    what: 'the session to go on',
    deadlineMs: 30_000,
  });
  expect(after.value).toBe('old');
  expect(after.pid).not.toBe(before.pid);
  expect((await variableOf(await initialize(urlOf(1)), 'VALUE')).value).toBe('new');
});
