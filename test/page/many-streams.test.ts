import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { openManyStreams, serversOfMany } from '../support/many-streams.ts';
import { waitFor } from '../support/wait-for.ts';
import { closeBrowser, openPage, startWatched } from './browser.ts';

afterAll(closeBrowser);

test('with 5,000 open streams the page stays live, and counts them', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'gangway.json'), JSON.stringify({ mcpServers: serversOfMany({ era: 'modern' }) }));
  const { admin, gateway } = await startWatched({ command: [], args: ['--config', join(folder, 'gangway.json')] });
  const page = await openPage(admin);
  const open = await openManyStreams(gateway.baseUrl);
  await page
    .getByText(/\b5,000 streams\b/)
    .first()
    .waitFor({ timeout: 60_000 });
  // What is told each second is told each second, and what is done is seen in the next.
  const seen: number[] = [];
  await page.exposeFunction('seen', (at: number) => seen.push(at));
  await page.evaluate(
    `
    const { Live } = await import('/page/live-state.js');
    const live = new Live(() => undefined);
    live.on('state', () => seen(performance.now()));
    live.start();
  `
      .replace(/^/, '(async () => {')
      .concat('})()'),
  );
  await waitFor(() => seen.length > 10, { deadlineMs: 30_000, what: 'ten snapshots' });
  const gaps = seen.slice(1).map((at, index) => at - (seen[index] as number));
  expect(Math.max(...gaps)).toBeLessThan(2_000);
  const startedAt = performance.now();
  await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).click();
  await page.getByText(/^Connected to /).waitFor();
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  for (const stream of open) stream.drop();
});
