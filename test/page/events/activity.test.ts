import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { freeze, thaw } from '../../support/freeze.ts';
import { everythingFixture, root } from '../../support/gateway.ts';
import { initialize } from '../../support/http-client.ts';
import { startRedis } from '../../support/redis-server.ts';
import { closeBrowser, openPage, startWatched } from '../browser.ts';

/** The recent events on the page, and what it says when its gateway does not respond. */

afterAll(closeBrowser);

const activityOf = (page: Page): Locator => page.getByRole('list', { name: 'Activity' });

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Posts with a host that the gateway does not serve. `fetch` does not send one. */
const postToHost = (port: number, path: string, host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers: { host } });
    sent.once('response', (response) => resolve(response.resume().statusCode)).once('error', reject);
    sent.end('{}');
  });

test('an exit has its code and the last lines of stderr, a refusal its host, a reload its changes or its reason', async () => {
  const folder = createFolder();
  const file = join(folder, 'gangway.json');
  const [command, ...args] = everythingFixture;
  const crashing = { command, args: [`${root}test/page/scene-server.mjs`, 'crashing'] };
  const calm = { command, args };
  const write = (mcpServers: object): void => writeFileSync(file, JSON.stringify({ mcpServers }));
  write({ reports: crashing, calm });
  const { admin, gateway } = await startWatched({ command: [], args: ['--config', file] });
  const page = await openPage(admin);
  const activity = activityOf(page);
  const session = await initialize(`${gateway.baseUrl}/reports/mcp`);
  for (let call = 0; call < 25; call += 1) await session.callTool('query', {}).catch(() => undefined);
  const exit = activity.getByRole('listitem').filter({ hasText: 'Server ended' }).first();
  await exit.getByText('The server exited with code 70.').waitFor();
  await exit.getByText('reports: fatal, giving up').waitFor();
  await activity.getByText('Server restored').first().waitFor();

  expect(await postToHost(gateway.port, '/calm/mcp', 'evil.example')).toBe(403);
  await activity.getByText('wrong host: Host: evil.example').waitFor();

  write({ reports: crashing, calm, added: calm });
  await activity.getByText('Added: added.').waitFor();
  writeFileSync(file, '{"mcpServers": {');
  await activity.getByText('Changed configuration refused').waitFor();

  await page.getByRole('region', { name: 'Activity' }).getByLabel('Server').selectOption('calm');
  await activity.getByText('Server ended').first().waitFor({ state: 'detached' });
  expect(await activity.getByRole('listitem').count()).toBe(1);
});

test('a drain is listed', async () => {
  const { admin, gateway } = await startWatched();
  const session = await initialize(gateway.url);
  const page = await openPage(admin, 'overview', { expected: 'net::ERR' });
  const call = session.callTool('slow', { ms: 4_000 });
  await page.getByText('1 call in flight').first().waitFor();
  await page.getByRole('button', { name: 'Drain…' }).click();
  await page.getByRole('button', { name: 'Drain and exit' }).click();
  await activityOf(page).getByText('Instance drains').waitFor();
  await call;
});

test('the page says that a frozen gateway does not respond, and is live again with it', async () => {
  const { admin, gateway } = await startWatched();
  const page = await openPage(admin);
  const link = page.locator('#link');
  await freeze(gateway.pid);
  onTestFinished(() => thaw(gateway.pid));
  await link.getByText('No data for 5 s: the gateway does not respond').waitFor();
  thaw(gateway.pid);
  await link.getByText('Live').waitFor();
});

test('the store has its speed, and its outage is told with a colour and in the list', async () => {
  await using redis = await startRedis();
  const { admin } = await startWatched({ args: ['--redis', redis.url] });
  const page = await openPage(admin);
  const store = page.locator('.figures > div').filter({ hasText: 'Store' });
  await store.getByText(/^connected; answers in [\d.]+\sms, at most [\d.]+\sms in the last minute$/).waitFor();
  await redis.kill();
  await store.getByText('Redis is away').waitFor();
  await activityOf(page).getByText('The store is unavailable').waitFor();
  await redis.restart({ keepData: false });
  await store.getByText(/^Redis is (?:well|slow)$/).waitFor();
  await activityOf(page).getByText('The store is available').first().waitFor();
});
