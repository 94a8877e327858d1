import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { callForTask, getTask } from '../support/task-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { closeBrowser, openPage, startWatched } from './browser.ts';

/** The page of one instance of several that share a Redis. */

afterAll(closeBrowser);

async function connect(name: string, url: string): Promise<void> {
  const client = new Client({ name, version: '3' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  onTestFinished(() => client.close());
}

test('the sessions of all instances are listed with the name of their instance, and found by it', async () => {
  await using redis = await startRedis();
  const [here, there] = [
    await startWatched({ args: ['--redis', redis.url] }),
    await startWatched({ args: ['--redis', redis.url] }),
  ];
  await connect('nearby', here.gateway.url);
  await connect('far-away', there.gateway.url);
  const page = await openPage(here.admin, 'sessions');
  const rows = page.getByRole('region', { name: 'List of sessions' }).getByRole('row');
  await rows.filter({ hasText: 'far-away 3' }).locator('td.instance').getByText(`:${there.gateway.pid}`).waitFor();
  const own = rows.filter({ hasText: `:${here.gateway.pid} (this one)` });
  await own.getByRole('link').waitFor();
  await page.getByText('2 sessions on 2 instances, newest first').waitFor();
  await page.getByText(/^Sessions of 1 other instance were reported at most \d\ss ago\.$/).waitFor();
  // Only the instance of a session has its messages, and may end it.
  expect(await rows.filter({ hasText: 'far-away' }).getByRole('link').count()).toBe(0);
  expect(await rows.filter({ hasText: 'far-away' }).getByRole('button').count()).toBe(0);
  expect(await own.getByRole('button').count()).toBe(1);

  await page.getByLabel('Search').fill('far-away');
  await page.getByText('1 of 2 sessions found').waitFor();
  await page.getByLabel('Search').fill('');
  await page.getByLabel('Sessions of').selectOption('This instance');
  await page.getByText('1 session on this instance').waitFor();
  expect(await rows.filter({ hasText: 'far-away' }).count()).toBe(0);

  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText(/1 session · .* · reported \d s ago$/).waitFor();
  const server = page.getByRole('article', { name: 'everything-server' }).locator('summary');
  await server.getByText('1 session here · client nearby 3').waitFor();
  await server.getByText(new RegExp(`^1 at .*:${there.gateway.pid} · client far-away 3$`)).waitFor();
  await page.locator('.figures > div').filter({ hasText: '2 on 2 instances' }).getByText('1 here').waitFor();

  const other = there.gateway.logs().find(({ msg }) => msg === 'session started')?.['session'] as string;
  await page.evaluate(`location.hash = 'sessions/everything-server/${other}'`);
  await page.getByText(new RegExp(`on instance .*:${there.gateway.pid}, whose status page shows`)).waitFor();
  await page.evaluate("location.hash = 'sessions/everything-server/unknown0'");
  await page.getByText('has ended: no instance has it').waitFor();
});

test('the tasks of all instances are listed with state and age, and cancelled wherever they run', async () => {
  await using redis = await startRedis();
  const command = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];
  const args = ['--redis', redis.url, '--defaults.tasks.after', '100ms'];
  const [here, there] = [await startWatched({ command, args }), await startWatched({ command, args })];
  const own = await callForTask(here.gateway.url, 'slow_compute', { seconds: 600 });
  const other = await callForTask(there.gateway.url, 'confirm_delete');
  const page = await openPage(here.admin, 'sessions');
  const rows = page.getByRole('region', { name: 'List of tasks' }).getByRole('row');
  const ofTool = (tool: string) => rows.filter({ hasText: tool });
  await ofTool('slow_compute').getByText(`:${here.gateway.pid} (this one)`).waitFor();
  await ofTool('slow_compute').getByText('working').waitFor();
  await ofTool('confirm_delete').locator('td.instance').getByText(`:${there.gateway.pid}`).waitFor();
  await ofTool('confirm_delete').getByText('waits for input').waitFor();
  await page.getByText('2 calls that became a task and run, newest first').waitFor();
  for (const [tool, { taskId }] of [
    ['slow_compute', own],
    ['confirm_delete', other],
  ] as const) {
    await ofTool(tool)
      .getByRole('button', { name: /^Cancel task / })
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel task' }).click();
    await page
      .getByText(/^Task \S+ is cancelled\.$/)
      .first()
      .waitFor();
    await waitFor(async () => (await getTask(here.gateway.url, taskId)).status === 'cancelled');
    await ofTool(tool).waitFor({ state: 'detached' });
  }
  // The id of a task is for its client alone.
  expect(await page.content()).not.toContain(own.taskId);
});
