import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { closeBrowser, openPage, startWatched, type WatchedGateway } from './browser.ts';

/** Each view at the width of a desk and of a phone, light and dark: no serious fault of accessibility, nothing cut off. */

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');

let watched: WatchedGateway;

beforeAll(async () => {
  watched = await startWatched({ isStoppedWithTest: false, args: ['--observe.showContents'] });
  const session = await initialize(watched.gateway.url);
  await session.callTool('echo', { text: 'hello' });
});

afterAll(async () => {
  await closeBrowser();
  await watched.gateway.stop();
});

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe-core calls serious or critical. */
async function faultsOf(page: Page): Promise<string[]> {
  // The page lets no script of others run; the browser's own tools may.
  const session = await page.context().newCDPSession(page);
  const run = async (expression: string): Promise<unknown> =>
    (await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result.value;
  await run(axe);
  const violations = (await run('axe.run().then(({ violations }) => violations)')) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

const sizes = { desk: { width: 1280, height: 900 }, phone: { width: 375, height: 812 } };

describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
  describe.each(Object.entries(sizes))('%s', (_, viewport) => {
    test.each(['overview', 'sessions', 'playground', 'connect'])('%s', async (view) => {
      const page = await openPage(watched.admin, view, { colorScheme, viewport });
      if (view === 'overview') await page.getByText(/^\d+ process.*, /).waitFor();
      if (view === 'sessions') await page.getByRole('rowheader').getByRole('link').first().click();
      if (view === 'playground') {
        await page.getByRole('button', { name: 'Connect', exact: true }).click();
        await page.getByRole('button', { name: 'test_elicitation_sep1330_enums' }).click();
        await page.getByRole('button', { name: 'Call', exact: true }).click();
        await page.getByRole('heading', { name: 'The server requests input' }).waitFor();
      }
      expect(await faultsOf(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width);
    });
  });

  test('a question', async () => {
    const page = await openPage(watched.admin, 'overview', { colorScheme });
    await page.getByRole('button', { name: 'Drain…' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });
});
