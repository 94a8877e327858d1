import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Page } from 'playwright-core';
import { parse } from 'shell-quote';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { root } from '../support/gateway.ts';
import { closeBrowser, openPage, startWatched, type WatchedGateway } from './browser.ts';

/** What the page gives to be copied, for a gateway that asks for a key: it works as it stands there, with the key in the variable that it names. */

const key = 'k'.repeat(40);
const operatorKey = 'o'.repeat(40);
const run = promisify(execFile);

let watched: WatchedGateway;
let folder: string;
let snippets: ReadonlyMap<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-snippets-'));
  const operator = { name: 'operator', sha256: digestOfKey(operatorKey), scopes: ['gangway:status'] };
  await writeFile(join(folder, 'keys.json'), JSON.stringify([operator]));
  const env = { GANGWAY_API_KEYS: `alice:sha256:${digestOfKey(key)}` };
  watched = await startWatched({ isStoppedWithTest: false, env, args: ['--api-keys-file', join(folder, 'keys.json')] });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
});

afterAll(async () => {
  await closeBrowser();
  await watched.gateway.stop();
  await rm(folder, { recursive: true });
});

const textsOf = async (page: Page): Promise<ReadonlyMap<string, string>> => {
  const found = await page
    .locator('pre[aria-label^="For "]')
    .evaluateAll((all) => all.map((each) => [each.getAttribute('aria-label') ?? '', each.textContent ?? ''] as const));
  return new Map(found.map(([label, text]) => [label.replace(/^For /, ''), text]));
};

/** The snippet for a client. It names the key without containing it. */
async function snippetFor(title: string): Promise<string> {
  snippets ??= await textsOf(
    await openPage(watched.admin, 'connect', { expected: '401 (Unauthorized)', key: operatorKey }),
  );
  const text = snippets.get(title);
  if (text === undefined) throw new Error(`no snippet for ${title}`);
  return text;
}

const name = 'everything-server';

describe('with a key', () => {
  test.each(['TypeScript SDK', 'TypeScript SDK 1'])('%s: the program lists the tools, and ends', async (title) => {
    const file = join(folder, `${title.replaceAll(' ', '-')}.mjs`);
    await writeFile(file, await snippetFor(title));
    expect(
      (await run(process.execPath, [file], { timeout: 30_000, env: { ...process.env, GANGWAY_KEY: key } })).stdout,
    ).toContain("name: 'echo'");
  });

  test.each([
    ['Cursor', 'mcpServers', '${env:GANGWAY_KEY}'],
    ['VS Code', 'servers', '${input:gangway-key}'],
  ])('%s: the file has a URL and headers with which a client is let in', async (title, section, reference) => {
    const text = await snippetFor(title);
    expect(text).toContain(`Bearer ${reference}`);
    const { url, headers } = JSON.parse(text.replace(reference, key))[section][name];
    const client = new Client({ name: 't', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    expect((await client.listTools()).tools.length).toBeGreaterThan(5);
    await client.close();
  });

  test('Claude Desktop: mcp-remote gets URL and header as one argument each', async () => {
    const { command, args, env } = JSON.parse(await snippetFor('Claude Desktop')).mcpServers[name];
    const option = ['--header', 'Authorization:${AUTHORIZATION}'];
    expect([command, ...args]).toEqual(['npx', '-y', 'mcp-remote', watched.gateway.url, ...option]);
    expect(env).toEqual({ AUTHORIZATION: 'Bearer YOUR_KEY' });
  });

  test.each([
    ['Claude Code', ['claude', 'mcp', 'add', '--transport', 'http', name], '${GANGWAY_KEY}'],
    ['MCP Inspector', ['npx', '@modelcontextprotocol/inspector@2', '--cli'], key],
  ])('%s: a shell makes of the command what is meant', async (title, words, bearer) => {
    const made = parse(await snippetFor(title), { GANGWAY_KEY: key });
    expect(made.slice(0, words.length + 1)).toEqual([...words, watched.gateway.url]);
    expect(made.slice(-2)).toEqual(['--header', `Authorization: Bearer ${bearer}`]);
  });

  // Python's SDK is no dependency of the tests; that the programs ran was seen by hand.
  test.each(['Python SDK', 'Python SDK 1'])('%s: the key is in the header', async (title) => {
    expect(await snippetFor(title)).toContain('{"Authorization": "Bearer " + os.environ["GANGWAY_KEY"]}');
  });
});

test('a link adds the server to Cursor and to VS Code, with the URL and the header for the key', async () => {
  const page = await openPage(watched.admin, 'connect', { key: operatorKey, expected: '401 (Unauthorized)' });
  const linkOf = async (client: string): Promise<URL> =>
    new URL((await page.getByRole('link', { name: `Add to ${client}` }).getAttribute('href')) as string);
  const settingsWith = (reference: string) => ({
    url: watched.gateway.url,
    headers: { Authorization: `Bearer ${reference}` },
  });
  const { searchParams } = await linkOf('Cursor');
  expect(searchParams.get('name')).toBe('everything-server');
  expect(JSON.parse(Buffer.from(searchParams.get('config') as string, 'base64').toString())).toEqual(
    settingsWith('${env:GANGWAY_KEY}'),
  );
  const { protocol, search } = await linkOf('VS Code');
  expect(protocol).toBe('vscode:');
  expect(JSON.parse(decodeURIComponent(search.slice(1)))).toEqual({
    ...{ name: 'everything-server', type: 'http' },
    ...settingsWith('${input:gangway-key}'),
    inputs: [{ type: 'promptString', id: 'gangway-key', description: 'Key of the MCP gateway', password: true }],
  });
  expect(await page.getByRole('link', { name: /^Add to / }).count()).toBe(2);
});

test('actions that the key does not allow are not offered', async () => {
  const page = await openPage(watched.admin, 'overview', { key: operatorKey, expected: '401 (Unauthorized)' });
  await page.getByRole('article', { name: 'everything-server' }).waitFor();
  expect(await page.getByRole('button', { name: /^(?:Drain|Restart)/ }).count()).toBe(0);
});
