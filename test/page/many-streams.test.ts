import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { modernFixture } from '../support/gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { closeBrowser, openPage, startWatched } from './browser.ts';

afterAll(closeBrowser);

const streams = 5_000;
/** A server made with the SDK takes 1,024 subscriptions. */
const names = ['one', 'two', 'three', 'four', 'five'];
/** Opened at once; the others wait. */
const atOnce = 200;

const listen = (id: number) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'subscriptions/listen',
    params: {
      notifications: { toolsListChanged: true },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'many', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });

/** Opens a stream and resolves when it is there. */
async function openStream(url: string, agent: Agent, id: number): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'subscriptions/listen',
  };
  const asked = request(url, { method: 'POST', agent, headers }).end(listen(id));
  asked.on('error', () => undefined); // when the gateway ends
  const [response] = await once(asked, 'response');
  expect(response.statusCode).toBe(200);
  response.resume();
}

test('with 5,000 open streams the page stays live, and counts them', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [command, ...args] = modernFixture;
  const mcpServers = Object.fromEntries(names.map((name) => [name, { command, args, era: 'modern' }]));
  writeFileSync(join(folder, 'gangway.json'), JSON.stringify({ mcpServers }));
  const { admin, gateway } = await startWatched({ command: [], args: ['--config', join(folder, 'gangway.json')] });
  const page = await openPage(admin);
  const agent = new Agent();
  let opened = 0;
  const openSome = async (): Promise<void> => {
    while (opened < streams) {
      opened += 1;
      await openStream(`${gateway.baseUrl}/${names[opened % names.length]}/mcp`, agent, opened);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, openSome));
  await page.getByText('5,000', { exact: true }).waitFor({ timeout: 60_000 });
  // What is told each second is told each second, and what is done is seen in the next.
  const seen: number[] = [];
  await page.exposeFunction('seen', (at: number) => seen.push(at));
  await page.evaluate(
    `
    const { Live } = await import('/page/live.js');
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
  await page.getByRole('link', { name: 'Playground' }).click();
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByText(/^Connected to /).waitFor();
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  agent.destroy();
});
