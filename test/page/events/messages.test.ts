import { readFile } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';
import { root } from '../../support/gateway.ts';
import { initialize } from '../../support/http-client.ts';
import { closeBrowser, openPage, startWatched } from '../browser.ts';

/** The messages of a session, and the plots. */

afterAll(closeBrowser);

test('messages are copied and saved as JSON Lines, and progress is one row', async () => {
  const { admin, gateway } = await startWatched();
  const session = await initialize(gateway.url);
  const page = await openPage(admin, 'sessions', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('rowheader').getByRole('link').click();
  await page.getByText('New messages appear here').waitFor();
  await session.callTool('echo', { text: 'hello' });
  await session.request('tools/call', {
    ...{ name: 'progress', arguments: { count: 3, gapMs: 10 } },
    _meta: { progressToken: 'p' },
  });
  await page.getByText('notifications/progress').getByText('× 3').or(page.getByText(/× 3$/)).first().waitFor();
  const rows = page.getByRole('listitem').filter({ hasText: 'tools/call' });
  await rows
    .filter({ hasText: 'progress' })
    .getByText(/ · ok$/)
    .waitFor();

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save as JSON Lines' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('messages.jsonl');
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n');
  const saved = lines.map((line) => JSON.parse(line));
  expect(saved.find(({ name }) => name === 'echo')).toMatchObject({
    ...{ method: 'tools/call', kind: 'request', from: 'client' },
    response: { kind: 'response', isError: false },
  });
  expect(saved.find(({ method }) => method === 'notifications/progress')).toMatchObject({ count: 3 });

  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByText('Copied.').first().waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(lines.join('\n'));
});

test('a call that is lost in a crash has failed: in its row, and in the numbers of its session', async () => {
  const command = [process.execPath, `${root}test/page/scene-server.mjs`, 'crashing'];
  const { admin, gateway } = await startWatched({ command });
  const session = await initialize(gateway.url);
  const page = await openPage(admin, 'sessions');
  await page.getByRole('rowheader').getByRole('link').click();
  await page.getByText('New messages appear here').waitFor();
  for (let call = 1; call <= 25; call += 1) await session.callTool('query', {}).catch(() => undefined);
  const failed = page.getByRole('listitem').filter({ hasText: 'server_exited' });
  await failed.filter({ hasText: 'query' }).locator('.figure.bad').waitFor();
  await page.getByText(/, 1 failed .*: tools\/call: the gateway answered with server_exited/).waitFor();
});

test('plots have ranges, and the value under the pointer in all of them', async () => {
  const { admin, gateway } = await startWatched();
  const session = await initialize(gateway.url);
  await session.request('tools/call', {
    ...{ name: 'progress', arguments: { count: 20, gapMs: 10 } },
    _meta: { progressToken: 'p' },
  });
  const page = await openPage(admin);
  const charts = page.getByRole('region', { name: 'Charts' });
  for (const name of [
    /^Calls per second\. Calls: now .*; Failed: /,
    /^Response time\. Median: .*; p95: .*; p99: /,
    /^Sessions and streams\. Sessions: now 1, /,
    /^Memory\. Gateway: now [\d.]+\sMiB.*; Servers: now [\d.]+\sMiB/,
    /^Events to clients per second\. Events: now .*, maximum [1-9]/,
    /^Resumed streams and takeovers\. Resumed: now 0, .*; Taken over: now 0/,
  ])
    await charts.getByRole('img', { name }).waitFor();
  // Grafana has the same charts.
  const { panels } = JSON.parse(await readFile(`${root}deploy/grafana/dashboard.json`, 'utf8'));
  const first = panels.findIndex(({ title }: { title: string }) => title === 'As on the status page') + 1;
  const inGrafana = panels
    .slice(first)
    .map(({ title, targets }: { title: string; targets: { legendFormat: string }[] }) => [
      title,
      ...targets.map(({ legendFormat }) => legendFormat),
    ]);
  const labels = await charts
    .locator('figure')
    .evaluateAll((figures) =>
      figures.map((figure) => [
        figure.querySelector('figcaption').textContent,
        ...Array.from(figure.querySelectorAll('.u-series .u-label'), (label: { textContent: string }) =>
          label.textContent.trim(),
        ).slice(1),
      ]),
    );
  expect(labels).toEqual(inGrafana);
  const plots = charts.locator('.u-over');
  expect(await plots.count()).toBe(6);
  await plots.first().scrollIntoViewIfNeeded();
  // The newest step is at the right edge.
  const { width, height } = (await plots.first().boundingBox()) as { width: number; height: number };
  await plots.first().hover({ position: { x: width - 2, y: height / 2 } });
  const legends = charts.locator('.u-legend');
  await legends
    .nth(2)
    .getByText(/^\d\d:\d\d:\d\d$/)
    .waitFor();
  for (const range of ['1 hour', '24 hours', '5 minutes']) {
    await page.getByLabel('Range').selectOption(range);
    await charts.getByRole('img', { name: /^Memory\. / }).waitFor();
  }
  await charts.getByRole('img', { name: /^Sessions and streams\. Sessions: now 1, / }).waitFor();
});
