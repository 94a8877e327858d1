import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { closeBrowser, openBrowser, openPage, startWatched, type WatchedGateway } from './browser.ts';
import { firstLooks, sizes } from './look-sizes.ts';

/**
 * Each view on a phone in the dark (with `PAGE_LOOKS=4`, also at the width of a desk, and in the light): no fault of
 * accessibility, nothing cut off. The servers of the scene are in trouble, so that every colour and every kind of text is
 * seen.
 */

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');

let watched: WatchedGateway;
let scene: { readonly url: string; readonly key: string; readonly child: ChildProcess };

async function startScene(): Promise<typeof scene> {
  const child = spawn(process.execPath, [`${root}test/page/scene.mjs`], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    printed += chunk;
    const [, url, key] = /Status page: (\S+)\nKey of the operator: (\S+)\n/.exec(printed) ?? [];
    if (url !== undefined && key !== undefined) return { url, key, child };
  }
  throw new Error('the scene does not start');
}

beforeAll(async () => {
  scene = await startScene();
  watched = await startWatched({ isStoppedWithTest: false, args: ['--observe.showContents'] });
  const session = await initialize(watched.gateway.url);
  await session.callTool('echo', { text: 'hello' });
});

afterAll(async () => {
  await closeBrowser();
  await watched.gateway.stop();
  const ended = once(scene.child, 'exit');
  scene.child.kill();
  await ended;
});

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** Everything that axe-core calls a violation, whatever its impact. */
async function faultsOf(page: Page): Promise<string[]> {
  // The page lets no script of others run; the browser's own tools may.
  const session = await page.context().newCDPSession(page);
  const run = async (expression: string): Promise<unknown> =>
    (await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result.value;
  await run(axe);
  const violations = (await run('axe.run().then(({ violations }) => violations)')) as Violation[];
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${impact}): ${html} ${failureSummary}`),
  );
}

type Use = (page: Page) => Promise<void>;

const call =
  (tool: string, outcome: Use): Use =>
  async (page) => {
    await page.getByRole('button', { name: tool, exact: true }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await outcome(page);
  };

/** The views of a gateway whose server works. */
const calmViews: Readonly<Record<string, readonly [view: string, use: Use]>> = {
  overview: ['overview', (page) => page.getByText(/^\d+ process.*, /).waitFor()],
  'a session': ['sessions', (page) => page.getByRole('rowheader').getByRole('link').first().click()],
  connect: ['connect', (page) => page.getByRole('button', { name: 'Copy for Cursor' }).waitFor()],
  'a request of a server': [
    'playground',
    call('test_elicitation_sep1330_enums', (page) =>
      page.getByRole('heading', { name: 'The server requests input' }).waitFor(),
    ),
  ],
  'a result': [
    'playground',
    call('test_audio_content', (page) => page.getByLabel('Result').locator('audio').waitFor()),
  ],
  'a failed call': ['playground', call('test_error_handling', (page) => page.getByText(/^The tool failed/).waitFor())],
  'a cut stream': [
    'playground',
    async (page) => {
      await page.getByRole('button', { name: 'progress', exact: true }).click();
      // On a busy machine, the cut comes seconds after the third event.
      await page.getByLabel('count').fill('24');
      await page.getByLabel('gapMs').fill('500');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByText('notifications/progress 3 of 24').waitFor();
      await page.getByRole('button', { name: 'Cut the connection' }).click();
      await page.getByRole('img', { name: /none repeated/ }).waitFor();
      await page.getByText(/^Done after/).waitFor();
    },
  ],
  'a question': [
    'overview',
    async (page) => {
      await page.getByRole('button', { name: 'Drain…' }).click();
      await page.getByRole('dialog').waitFor();
    },
  ],
};

/** Opens the page of the scene, when all its faults are seen. */
async function openScene(view: string, options: Parameters<typeof openPage>[2]): Promise<Page> {
  const page = await openPage(scene.url, view, { key: scene.key, expected: '401 (Unauthorized)', ...options });
  const stateOf = (server: string) => page.getByRole('article', { name: server }).locator('.pill');
  if (view !== 'overview') return page;
  await stateOf('database').getByText('Down').waitFor();
  for (const server of ['mail', 'chat', 'reports']) await stateOf(server).getByText('Degraded').waitFor();
  return page;
}

describe.each(firstLooks(1))('%s', (_, { size, viewport, colorScheme }) => {
  const expectFine = async (page: Page): Promise<void> => {
    expect(await faultsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width);
  };

  test.each(Object.entries(calmViews))('%s', async (_, [view, use]) => {
    const page = await openPage(watched.admin, view, { colorScheme, viewport });
    await use(page);
    await expectFine(page);
  });

  test('servers in trouble, closed and opened', async () => {
    const page = await openScene('overview', { colorScheme, viewport });
    await expectFine(page);
    if (size === 'phone') await expectFirstScreen(page);
    const streams = page.locator('.figures > div').filter({ hasText: 'Resumed streams' });
    await streams
      .getByText(/^no event lost in 5 min; last at .* at files: alice \(Field App 3\.1\), session /)
      .waitFor();
    await page
      .locator('.figures > div')
      .filter({ hasText: 'This instance' })
      .getByText(/: ready, 1 session$/)
      .waitFor();
    for (const server of ['database', 'mail', 'reports', 'chat'])
      await page.getByRole('article', { name: server }).getByRole('heading').first().click();
    const tool = page.getByRole('article', { name: 'mail' }).getByRole('row').filter({ hasText: 'query' });
    await tool.getByText(/the tool reported an error/).waitFor();
    const chat = page.getByRole('article', { name: 'chat' });
    await chat.getByLabel('Last lines on stdout that are not MCP messages').waitFor();
    await expectFine(page);
  });

  test('sessions with failed calls', async () => {
    const page = await openScene('sessions', { colorScheme, viewport });
    const row = page.getByRole('row').filter({ hasText: 'mail' }).filter({ hasText: 'bob' }).first();
    await row.getByText('Cursor 0.50').filter({ visible: true }).waitFor();
    await row
      .getByText(/tools\/call: the tool reported an error/)
      .filter({ visible: true })
      .waitFor();
    await expectFine(page);
    // The error can be read to its end.
    const cut = await row.locator('td.error').evaluate((cell: unknown) => {
      const { scrollWidth, clientWidth } = cell as { scrollWidth: number; clientWidth: number };
      return scrollWidth - clientWidth;
    });
    expect(cut).toBeLessThanOrEqual(1);
    // Which instance has a session is said at each size.
    const elsewhere = page.getByRole('row').filter({ hasText: 'carol' });
    const instance = elsewhere.getByText(/\S+:\d+$/).filter({ visible: true });
    await instance.waitFor();
    await page.getByLabel('Sessions of').selectOption('This instance');
    await elsewhere.waitFor({ state: 'detached' });
    await row.getByRole('link').first().click();
    await page
      .getByText(/ · failed$/)
      .first()
      .waitFor();
    // The method and the tool are readable in one line.
    const label = page.getByRole('listitem').getByText('tools/call query').first();
    expect((await label.boundingBox())?.height).toBeLessThan(40);
    await expectFine(page);
  });

  test('errors, and what a check has found', async () => {
    const page = await openScene('errors', { colorScheme, viewport });
    await page.getByRole('row').filter({ hasText: 'mail' }).first().waitFor();
    await expectFine(page);
    await page.evaluate("location.hash = 'overview/servers/database'");
    await page.getByRole('button', { name: 'Check database' }).click();
    await page.getByText(/^Failed database: /).waitFor();
    await expectFine(page);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await expectFine(page);
  });

  test('the sign-in', async () => {
    const context = await (await openBrowser()).newContext({ colorScheme, viewport });
    const page = await context.newPage();
    await page.goto(scene.url);
    await page.getByLabel('API key').fill('no-such-key');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('The API key is not valid here, or has expired.').waitFor();
    await expectFine(page);
    await context.close();
  });
});

/** On the first screen of a phone: the worst server, what it said last, and whose sessions the next one has. */
async function expectFirstScreen(page: Page): Promise<void> {
  const { width, height } = sizes.phone;
  const parts = [
    page.getByRole('article', { name: 'database' }).getByText('database: connect ECONNREFUSED 127.0.0.1:5432'),
    page.getByRole('article', { name: 'mail' }).getByText(/2 sessions · .*bob \(Cursor 0\.50\)/),
  ];
  for (const part of parts) {
    const visible = part.filter({ visible: true }).first();
    const box = await visible.boundingBox();
    if (box === null) throw new Error('it is not shown');
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(width);
    expect(box.y + box.height).toBeLessThanOrEqual(height);
    // Not shortened: the box has room for all of the text.
    const hidden = await visible.evaluate((element: unknown) => {
      const { scrollHeight, clientHeight } = element as { scrollHeight: number; clientHeight: number };
      return scrollHeight - clientHeight;
    });
    expect(hidden).toBeLessThanOrEqual(1);
  }
}
