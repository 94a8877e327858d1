import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { callModern } from '../support/modern-client.ts';
import { closeBrowser, connectPlayground, openPage, startWatched, type WatchedGateway } from './browser.ts';

/** How an operator finds what is wrong: the line of health, tables that are sorted and filtered, errors, and a check. */

const secret = 'hunter2-of-the-database';
const [command = '', ...args] = everythingFixture;
const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
let watched: WatchedGateway;

beforeAll(async () => {
  const script = `console.error("no such database, password=${secret}"); process.exit(3)`;
  const failing = { command: process.execPath, args: [`${root}test/page/scene-server.mjs`, 'failing'] };
  writeFileSync(
    join(folder, 'gangway.json'),
    JSON.stringify({
      mcpServers: {
        broken: { command: process.execPath, args: ['-e', script] },
        calm: { command, args, allowTools: ['echo', 'no_such_tool'] },
        mail: failing,
        archive: failing,
      },
      views: { desk: { servers: ['mail', 'archive'] } },
    }),
  );
  watched = await startWatched({
    isStoppedWithTest: false,
    command: [],
    args: ['--config', join(folder, 'gangway.json')],
  });
  const session = await initialize(`${watched.gateway.baseUrl}/mail/mcp`);
  await session.request('tools/list');
  for (let call = 0; call < 8; call += 1) await session.callTool('query', { text: 'invoices' });
  const calm = await initialize(`${watched.gateway.baseUrl}/calm/mcp`);
  await calm.request('tools/list');
  await calm.callTool('echo', { text: 'hello' });
  await initialize(`${watched.gateway.baseUrl}/broken/mcp`).catch(() => undefined);
});

afterAll(async () => {
  await closeBrowser();
  await watched.gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

const rowsOf = (page: Page): Promise<string[]> => page.locator('.server-rows h3').allTextContents();

test('one line says what is wrong, and leads to it; the table is sorted, filtered, and its address can be shared', async () => {
  const page = await openPage(watched.admin);
  const health = page.locator('.health');
  await health.getByText(/^broken is down\. mail and desk are degraded\./).waitFor();
  await expect.poll(() => page.title()).toBe('(1 down) Overview · mcp-gangway');
  await health.getByRole('link', { name: 'broken' }).click();
  await page.getByRole('article', { name: 'broken' }).getByRole('button', { name: 'Check broken' }).waitFor();
  await page.getByRole('link', { name: 'What “Down” means' }).waitFor();

  const sort = page.getByRole('group', { name: 'Sort servers' });
  await sort.getByRole('button', { name: 'Server' }).click();
  expect(await rowsOf(page)).toEqual(['archive', 'broken', 'calm', 'desk', 'mail']);
  await sort.getByRole('button', { name: 'Server' }).click();
  expect(await rowsOf(page)).toEqual(['mail', 'desk', 'calm', 'broken', 'archive']);
  await sort.getByRole('button', { name: 'Calls' }).click();
  expect((await rowsOf(page))[0]).toBe('mail');
  await page.keyboard.press('/');
  await page.keyboard.type('degraded');
  expect(await rowsOf(page)).toEqual(['mail', 'desk']);
  const address = String(await page.evaluate('location.hash'));
  expect(address).toBe('#overview/servers/broken?servers=degraded&sort=calls');
  await page.reload();
  await page.getByRole('article', { name: 'mail' }).waitFor();
  await page.getByRole('searchbox', { name: 'Filter servers' }).fill('no such server');
  await page.getByText('No server matches the filter.').waitFor();
});

test('the tools of a server are a table that is sorted, and leads to the playground', async () => {
  const page = await openPage(watched.admin, 'overview/servers/calm');
  const table = page.getByRole('region', { name: 'Tools of calm' });
  const head = table.getByRole('columnheader', { name: 'Calls' });
  await head.getByRole('button').click();
  expect(await head.getAttribute('aria-sort')).toBe('descending');
  await head.getByRole('button').click();
  expect(await head.getAttribute('aria-sort')).toBe('ascending');
  await table.getByRole('link', { name: 'echo' }).click();
  await page.waitForURL(/#playground\/calm\/echo$/);
  await connectPlayground(page);
  await page.getByRole('heading', { name: 'echo', level: 2 }).waitFor();
});

test('Check says what the command says, with notes and without credentials', async () => {
  const page = await openPage(watched.admin, 'overview/servers/broken', { expected: '404' });
  const found = (name: string) => page.getByRole('article', { name }).locator('.check');
  await page.getByRole('button', { name: 'Check broken' }).click();
  await found('broken')
    .getByText(/^Failed broken: .*exit.* 3/)
    .waitFor();
  await found('broken')
    .getByText(/no such database/)
    .waitFor();
  await found('broken').getByText('Checked 1: 0 OK, 1 failed.').waitFor();
  expect(await found('broken').textContent()).not.toContain('undefined');
  expect(await page.content()).not.toContain(secret);
  await page.evaluate("location.hash = 'overview/servers/calm'");
  await page.getByRole('button', { name: 'Check calm' }).click();
  await found('calm')
    .getByText(/^OK calm: .*, stdio, /)
    .waitFor();
  await found('calm')
    .getByText(/^Note calm: .*no_such_tool/)
    .waitFor();
  // Of a view, its servers are checked.
  await page.evaluate("location.hash = 'overview/servers/desk'");
  await page.getByRole('button', { name: 'Check desk' }).click();
  await found('desk')
    .getByText(/^Checked 2: 2 OK/)
    .waitFor();
  await found('desk').getByRole('button', { name: 'Close' }).click();
  await found('desk').waitFor({ state: 'hidden' });
});

test('the last errors of all sessions are one list: with request, cause, time and session, and what helps', async () => {
  const page = await openPage(watched.admin, 'errors');
  const rows = page.getByRole('region', { name: 'List of errors' }).locator('tbody tr');
  await page.getByText(/^\d+ failed calls of all sessions of this instance/).waitFor();
  const query = rows.filter({ hasText: 'tools/call query' }).first();
  await query.getByText('the tool reported an error').waitFor();
  await query.getByText('raw-test-client').filter({ visible: true }).waitFor();
  const [, session] = /#sessions\/mail\/([\w-]+)/.exec(
    String(await query.getByRole('link').last().getAttribute('href')),
  ) as RegExpExecArray;
  const failedStart = rows.filter({ hasText: 'broken' });
  await failedStart.getByText('the server did not start: server_start_failed').waitFor();
  expect(await failedStart.getByRole('link', { name: 'server_start_failed' }).getAttribute('href')).toMatch(
    /\/docs\/reference\/errors\.md#server_start_failed$/,
  );
  // Contents are shown only where the operator allows it.
  await page.getByText(/start the gateway with --observe\.showContents/).waitFor();
  expect(await page.content()).not.toContain('invoices');
  await page.locator('#errors-server').selectOption('broken');
  await query.waitFor({ state: 'detached' });
  await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
  await page.goBack();
  expect(await page.locator('#errors-server').inputValue()).toBe('broken');
  await page.locator('#errors-server').selectOption('');
  await page.locator('#errors-filter').fill(`${session} query`);
  await query.getByRole('link', { name: session as string }).click();
  await page.getByRole('heading', { name: `Session ${session}` }).waitFor();
});

test('failed calls without a session have their client in Errors, and the session that serves them has no number', async () => {
  // By default, clients without a session share one of the gateway's own.
  const { admin, gateway } = await startWatched({ env: { GANGWAY_SHARE: undefined } });
  const meta = { 'io.modelcontextprotocol/clientInfo': { name: 'Field App', version: '3.1' } };
  await callModern(gateway.url, 'test_error_handling', {}, { meta });
  const page = await openPage(admin, 'errors');
  await page.getByRole('cell', { name: 'Field App 3.1', exact: true }).waitFor();
  await page.evaluate("location.hash = 'sessions'");
  const row = page.getByRole('row').filter({ hasText: 'clients without a session' });
  await row.waitFor();
  // Calls, and failed calls.
  expect(await row.locator('td.figure').allTextContents()).toEqual(expect.arrayContaining(['1', '–']));
  await page.getByLabel('With failed calls').check();
  await page.getByText('Failed calls without a session are in Errors.').waitFor();
});

test('with --observe.showContents, an error has the arguments and the answer, without credentials', async () => {
  const { admin, gateway } = await startWatched({ args: ['--observe.showContents'] });
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  await session.callTool('test_error_handling', { password: secret, text: 'shown' });
  const page = await openPage(admin, 'errors');
  await page.locator('.said').getByText('This tool intentionally returns an error for testing').waitFor();
  await page.getByText('Arguments', { exact: true }).click();
  await page.getByLabel('Arguments').getByText('"text":"shown"').waitFor();
  await page.getByText('Answer', { exact: true }).click();
  await page.getByLabel('Answer').getByText('intentionally returns an error').waitFor();
  expect(await page.content()).not.toContain(secret);
});

test('sessions are sorted and filtered by server and by failed calls', async () => {
  const page = await openPage(watched.admin, 'sessions');
  const table = page.getByRole('region', { name: 'List of sessions' });
  const servers = () => table.locator('tbody td.name:not(.instance)').allTextContents();
  await table.getByRole('columnheader', { name: 'Failed' }).getByRole('button').click();
  await page.waitForURL(/#sessions\?sort=failed$/);
  await expect.poll(async () => (await servers())[0]).toMatch(/^mail/);
  await page.getByLabel('With failed calls').check();
  await page.getByText(/^1 of \d sessions found$/).waitFor();
  await table.getByRole('cell', { name: '6', exact: true }).getByRole('link').click();
  await page.getByRole('heading', { name: 'Errors' }).waitFor();
  await page.goBack();
  await page.getByLabel('With failed calls').uncheck();
  await page.locator('#session-server').selectOption('calm');
  await page.getByText(/^[1-9] of \d sessions found$/).waitFor();
  await expect.poll(async () => (await servers()).every((text) => text.startsWith('calm'))).toBe(true);
  await page.waitForURL(/#sessions\?of=calm&sort=failed$/);
});

test('the browser goes back and forward between tools of the playground, which Ctrl+Enter calls', async () => {
  const page = await openPage(watched.admin, 'playground/calm/echo');
  await connectPlayground(page);
  await page.getByLabel('text').fill('sent by a key');
  await page.keyboard.press('Control+Enter');
  await page.getByLabel('Result').getByText('sent by a key').waitFor();
  await page.getByRole('button', { name: 'test_simple_prompt', exact: true }).click();
  await page.waitForURL(/#playground\/calm\/test_simple_prompt$/);
  await page.goBack();
  await page.getByRole('heading', { name: 'echo', level: 2 }).waitFor();
  await page.goForward();
  await page.getByRole('heading', { name: 'test_simple_prompt', level: 2 }).waitFor();
  // The view itself keeps the tool.
  await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).click();
  await page.waitForURL(/#playground\/calm\/test_simple_prompt$/);
});

test('the playground connects to the first server that is up, and asks nothing of one that is down', async () => {
  const page = await openPage(watched.admin, 'playground', { expected: '502' });
  await connectPlayground(page);
  const server = page.locator('#play-server');
  expect(await server.inputValue()).not.toBe('broken');
  await server.selectOption('broken');
  await page.getByText('broken is down. Connect tries it again.').waitFor();
  await page.getByText(/^broken: .*exit.* 3/).waitFor();
});

test('a call that crashes the server shows in the playground what the server wrote last', async () => {
  const { admin } = await startWatched({
    command: [process.execPath, `${root}test/page/scene-server.mjs`, 'crashing'],
  });
  const page = await openPage(admin, 'playground/node/query', { expected: '502 (Bad Gateway)' });
  await connectPlayground(page);
  const result = page.getByText(/^(?:Done after|The MCP server exited)/);
  for (let call = 0; call < 25; call += 1) {
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('Running …').waitFor({ state: 'detached' });
    await result.waitFor();
  }
  await page.getByText(/^The MCP server exited before it answered/).waitFor();
  await page.getByLabel('Last lines of the server').getByText('reports: fatal, giving up').waitFor();
});

test('keys lead to the filter and to the views, and are listed', async () => {
  const page = await openPage(watched.admin, 'errors');
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).toBe('errors-filter');
  // In a field, a key is a part of the text.
  await page.keyboard.type('/?1');
  expect(await page.locator('#errors-filter').inputValue()).toBe('/?1');
  await page.getByRole('heading', { name: 'Errors' }).click();
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog', { name: 'Keys' });
  await dialog.getByText('Go to the filter of this view').waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.press('2');
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  // The list of messages, which is hidden, has a filter too.
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).toBe('search');
});

test('the page takes at most 400 KB', async () => {
  const page = await openPage(watched.admin);
  const sizes = await page.evaluate(
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/page/')).map(({ decodedBodySize }) => decodedBodySize)",
  );
  const bytes = (sizes as number[]).reduce((sum, size) => sum + size, 0);
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(400_000);
});
