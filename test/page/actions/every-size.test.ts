import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../../support/gateway.ts';
import { initialize } from '../../support/http-client.ts';
import { closeBrowser, connectPlayground, openPage, startWatched, type WatchedGateway } from '../browser.ts';
import { firstLooks } from '../look-sizes.ts';

/**
 * Each action of the page, at the width of a phone, and of a desk with `PAGE_LOOKS=4`. What an action does is tested elsewhere,
 * at the width of a desk.
 */

let watched: WatchedGateway;
let scene: WatchedGateway;

beforeAll(async () => {
  watched = await startWatched({ isStoppedWithTest: false });
  const command = [process.execPath, `${root}test/page/scene-server.mjs`];
  scene = await startWatched({ isStoppedWithTest: false, command });
});

afterAll(async () => {
  await closeBrowser();
  await Promise.all([watched.gateway.stop(), scene.gateway.stop()]);
});

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] };

const button = (on: Page | Locator, name: string | RegExp): Locator =>
  on.getByRole('button', { name, exact: true }).filter({ visible: true });
const press = (on: Page | Locator, name: string | RegExp): Promise<void> => button(on, name).first().click();

/** Presses a button, and expects this text as the outcome. */
async function pressFor(page: Page, name: string | RegExp, outcome: string | RegExp): Promise<void> {
  await press(page, name);
  await page.getByText(outcome).filter({ visible: true }).first().waitFor();
}

async function copied(page: Page): Promise<string> {
  await page
    .getByText(/^Copied/)
    .first()
    .waitFor();
  return String(await page.evaluate('navigator.clipboard.readText()'));
}

describe.each(firstLooks(1))('%s', (_, look) => {
  test('overview: colours, rows, ranges, activity, restart, check, drain', async () => {
    const session = await initialize(watched.gateway.url);
    const page = await openPage(watched.admin, 'overview', look);
    for (const theme of ['light', 'dark', 'auto']) {
      await press(page, /^Colours: /);
      await button(page, `Colours: ${theme}. Change.`).waitFor();
    }
    const server = page.getByRole('article', { name: 'everything-server' });
    const inside = server.getByRole('link', { name: 'Playground' });
    await inside.waitFor();
    await server.getByRole('heading').first().click();
    await inside.waitFor({ state: 'hidden' });
    await server.getByRole('heading').first().click();
    await inside.waitFor();
    await page.getByLabel('Range').selectOption('24 hours');
    await page.getByRole('region', { name: 'Activity' }).getByLabel('Server').selectOption('everything-server');
    await page.getByRole('list', { name: 'Activity' }).getByText('Session started').first().waitFor();
    await press(page, /^Restart the processes of/);
    await pressFor(page, 'Restart', /^Restarting processes of everything-server: \d+\.$/);
    await pressFor(page, 'Check everything-server', /^Checked 1: 1 OK/);
    await press(page, 'Drain…');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    for (const view of ['Sessions', 'Playground', 'Connect']) {
      await page.getByRole('link', { name: 'Overview', exact: true }).click();
      await server.getByRole('link', { name: view }).click();
      await page.getByRole('heading', { name: view, level: 1 }).waitFor();
    }
    await session.delete();
  });

  test('sessions: find, watch, filter, pause, copy, save, end', async () => {
    const [session, other] = [await initialize(watched.gateway.url), await initialize(watched.gateway.url)];
    const page = await openPage(watched.admin, 'overview', { ...look, ...clipboard });
    const find = page.getByRole('searchbox', { name: 'Find a session' });
    if (await find.isVisible()) await find.fill('raw-test-client');
    if (await find.isVisible()) await find.press('Enter');
    else await page.getByRole('link', { name: 'Sessions', exact: true }).first().click();
    const search = page.getByRole('searchbox', { name: 'Search' });
    await search.fill('no such session');
    await page.getByText('No session matches. Change the search or the other choices.').waitFor();
    await search.fill('raw-test-client');
    await page.getByRole('rowheader').getByRole('link').first().waitFor();
    // The newest session is the first one.
    await page.getByRole('rowheader').getByRole('link').first().click();
    await page.getByText(/^New messages appear here/).waitFor();
    await other.callTool('echo', { text: 'hello' });
    await other.callTool('test_error_handling', {});
    await page.getByText(/ · failed$/).waitFor();
    await page.getByLabel('Failed only').check();
    await page.locator('.flow').getByText('echo', { exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel('Failed only').uncheck();
    await page.getByRole('searchbox', { name: 'Filter messages' }).fill('echo');
    await page.getByText(/ · failed$/).waitFor({ state: 'detached' });
    await press(page, 'Copy');
    expect(JSON.parse(await copied(page))).toMatchObject({ name: 'echo' });
    const download = page.waitForEvent('download');
    await press(page, 'Save as JSON Lines');
    expect((await download).suggestedFilename()).toBe('messages.jsonl');
    await press(page, 'Pause');
    await press(page, 'Continue');
    await press(page, 'End session…');
    await pressFor(page, 'End session', /^Session \S+ has ended\.$/);
    await page.getByRole('link', { name: 'Close' }).click();
    // The row of an ended session stays until the page is told, and has the same button.
    await button(page, /^End session /)
      .nth(1)
      .waitFor({ state: 'detached' });
    await press(page, /^End session /);
    await press(page, 'End session');
    await page.getByText('No sessions. Connect a client, or use the playground.').waitFor();
    await Promise.all([session.delete(), other.delete()]);
  });

  test('playground: tools, prompts, resources, requests of the server, either revision', async () => {
    const page = await openPage(watched.admin, 'playground', { ...look, ...clipboard });
    await connectPlayground(page);
    await page.getByRole('searchbox', { name: 'Find', exact: true }).fill('echo');
    await press(page, 'echo');
    await page.getByLabel('text').fill('hello');
    await press(page, 'Copy as curl');
    expect(await copied(page)).toContain('hello');
    await press(page, 'Copy as SDK code');
    await press(page, 'Edit as JSON');
    await page.getByLabel('Arguments as JSON').fill('{"text":"from JSON"}');
    await pressFor(page, 'Call', 'from JSON');
    await press(page, 'Use the form');
    await page.getByRole('searchbox', { name: 'Find', exact: true }).fill('');

    await press(page, 'progress');
    await page.getByLabel('count').fill('50');
    await page.getByLabel('gapMs').fill('100');
    await pressFor(page, 'Call', 'notifications/progress 2 of 50');
    await press(page, 'Cut the connection');
    await page.getByText(/^Resuming with Last-Event-ID/).waitFor();
    await pressFor(page, 'Cancel the request', 'You cancelled the request.');
    await page.getByText('tools/call progress', { exact: true }).click();
    await page.getByText('"count": 50').filter({ visible: true }).waitFor();

    await press(page, 'test_simple_prompt');
    await pressFor(page, 'Get', /^Done after/);
    await press(page, 'static-text test://static-text');
    await pressFor(page, 'Read', 'This is the content of the static text resource.');
    await pressFor(page, 'Subscribe', 'No update yet');
    await press(page, /^Unsubscribe from/);

    await press(page, 'test_sampling');
    await page.getByRole('textbox', { name: /^prompt/ }).fill('Where?');
    await press(page, 'Call');
    await page.getByLabel('Answer from the model').fill('Paris');
    await pressFor(page, 'Answer', 'LLM response: Paris');
    await press(page, 'test_elicitation_sep1330_enums');
    await pressFor(page, 'Call', 'The server requests input');
    await pressFor(page, 'Decline', /^Done after/);
    await press(page, 'ask_client');
    await page.getByLabel('method').fill('roots/list');
    await press(page, 'Call');
    await page.getByLabel('One URI for each line').fill('file:///a');
    await pressFor(page, 'Answer', '{"roots":[{"uri":"file:///a"}]}');

    await connectPlayground(page, 'modern');
    await press(page, 'echo');
    await page.getByLabel('text').fill('without a session');
    await pressFor(page, 'Call', 'without a session');
  });

  test('playground: a link is read, a destructive tool is confirmed; settings are copied', async () => {
    const page = await openPage(scene.admin, 'playground', { ...look, ...clipboard });
    await connectPlayground(page);
    await press(page, 'report');
    await pressFor(page, 'Call', '4 of 5 orders are paid.');
    await pressFor(page, 'Read Report of today', 'Orders: 5. Paid: 4.');
    await press(page, 'Delete a file delete_file');
    await press(page, 'Call');
    await page.getByRole('dialog').getByRole('button', { name: 'Call' }).click();
    await page.getByLabel('Result').getByText('deleted').waitFor();
    await page.getByRole('link', { name: 'Connect', exact: true }).click();
    await page.getByLabel('URL for clients').fill('https://mcp.example/mcp');
    await press(page, 'Copy for Claude Code');
    expect(await copied(page)).toContain('https://mcp.example/mcp');
    await page.getByRole('link', { name: 'Add to Cursor' }).waitFor();
  });
});
