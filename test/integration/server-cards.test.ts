// Server cards (SEP-2127, a draft): docs/server-cards.md.
import type { OutgoingHttpHeaders } from 'node:http';
import { expect, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { openAnswered } from '../support/answered-session.ts';
import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { open } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

const catalogPath = '/.well-known/ai-catalog.json';
const publicUrl = 'https://tools.example.com';
const key = makeKey('alice');
const keyArgs = { env: { GANGWAY_API_KEYS: key.variable } };

async function get(url: string, headers: OutgoingHttpHeaders = {}, method = 'GET') {
  const answer = await (await open(url, { method, headers })).answer();
  return { ...answer, json: answer.status === 200 && answer.text !== '' ? JSON.parse(answer.text) : answer.json };
}

/** The rules of the draft for a card, for the members that ours have. */
function expectValidCard(card: Record<string, unknown>): void {
  expect(card['$schema']).toBe('https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json');
  expect(card['name']).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  expect(String(card['version'])).toMatch(/^.{1,255}$/);
  for (const member of ['title', 'description']) expect(String(card[member])).toMatch(/^.{1,100}$/u);
  for (const { type, url } of card['remotes'] as { type: string; url: string }[]) {
    expect(['streamable-http', 'sse']).toContain(type);
    expect(url).toMatch(/^https?:\/\/\S+$/);
  }
}

async function startView(options: { args?: readonly string[]; env?: Record<string, string> } = {}) {
  const servers = { tools: serverEntry(everythingFixture), new: serverEntry(modernFixture, { era: 'modern' }) };
  const { args } = await writeViewFile(servers, { all: ['*'] });
  return startLocalGateway({ ...options, args: [...args, ...(options.args ?? [])] });
}

test('the catalog leads to a card for each server and each view, and no process is started for them', async () => {
  const { args } = await writeViewFile({ tools: serverEntry(everythingFixture) }, { all: ['*'] });
  const gateway = await startGateway({ args });
  const catalog = await get(gateway.baseUrl + catalogPath);
  expect(catalog.headers).toMatchObject({
    'content-type': 'application/ai-catalog+json',
    'cache-control': 'private, no-cache',
  });
  const cards = `${gateway.baseUrl}`;
  expect(catalog.json).toEqual({
    specVersion: '1.0',
    entries: ['tools', 'all'].map((name) => ({
      identifier: `urn:air:localhost:mcp:${name}`,
      type: 'application/mcp-server-card+json',
      url: `${cards}/${name}/mcp/server-card`,
    })),
  });
  for (const { url } of catalog.json.entries) {
    const card = await get(url, { Accept: 'application/mcp-server-card+json' });
    expect(card.headers['content-type']).toBe('application/mcp-server-card+json');
    expectValidCard(card.json);
    const [endpoint] = card.json.remotes;
    expect(endpoint).toEqual({
      type: 'streamable-http',
      url: url.replace('/server-card', ''),
      supportedProtocolVersions: ['2026-07-28'],
    });
    expect(card.json.version).toBe('unknown');
  }
  expect(await gateway.descendants()).toEqual([]);
});

test('a card has the texts of the server and its revision once a client has reached it', async () => {
  const gateway = await startView();
  const cardOf = async (server: string) => (await get(`${gateway.baseUrl}/${server}/mcp/server-card`)).json;
  const session = await openAnswered(`${gateway.baseUrl}/tools/mcp`, { version: '2025-06-18' });
  const card = await cardOf('tools');
  expectValidCard(card);
  expect(card).toMatchObject({ name: 'localhost/tools', version: session.initialized.serverInfo.version });
  expect(card.remotes[0].supportedProtocolVersions).toEqual(['2025-06-18', '2026-07-28']);
  expect(card.remotes[1]).toEqual({ type: 'sse', url: `${gateway.baseUrl}/tools/sse` });
  const modern = await cardOf('new');
  expectValidCard(modern);
  expect(modern.remotes[0].supportedProtocolVersions).toHaveLength(5);
});

test('the paths of earlier drafts lead to the card of the only server, and to nothing where several are served', async () => {
  const gateway = await startLocalGateway({ command: everythingFixture });
  const several = await startView();
  for (const path of ['/.well-known/mcp/server-card', '/.well-known/mcp/server-card.json']) {
    const { status, headers } = await get(gateway.baseUrl + path);
    expect({ status, location: headers.location }).toEqual({
      status: 307,
      location: `${gateway.baseUrl}/mcp/server-card`,
    });
    expectValidCard((await get(String(headers.location))).json);
    expect(await get(gateway.baseUrl + path, { Origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    expect(await get(gateway.baseUrl + path, {}, 'POST')).toMatchObject({ status: 405 });
    expect(await get(several.baseUrl + path)).toMatchObject({ status: 404 });
  }
  const closed = await startLocalGateway({ command: everythingFixture, ...keyArgs });
  expect(await get(`${closed.baseUrl}/.well-known/mcp/server-card`)).toMatchObject({ status: 404 });
});

test('a client that has the document gets 304, also for HEAD', async () => {
  const gateway = await startLocalGateway({ command: everythingFixture });
  const url = `${gateway.baseUrl}/mcp/server-card`;
  const { headers } = await get(url);
  const etag = String(headers.etag);
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, '*'])
    expect(await get(url, { 'If-None-Match': value })).toMatchObject({ status: 304, text: '' });
  expect(await get(url, { 'If-None-Match': '"x"' })).toMatchObject({ status: 200 });
  expect(await get(url, {}, 'HEAD')).toMatchObject({ status: 200, text: '', headers: { etag } });
  expect(await get(url, {}, 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } });
});

test('[P11] the documents are only for those who could open a session', async () => {
  const gateway = await startLocalGateway({ command: everythingFixture });
  for (const path of [catalogPath, '/mcp/server-card']) {
    const url = gateway.baseUrl + path;
    expect(await get(url, { Origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    expect(await get(url, { Host: 'evil.example' })).toMatchObject({ status: 403 });
    expect((await get(url)).headers).not.toHaveProperty('access-control-allow-origin');
  }
  const closed = await startView(keyArgs);
  for (const path of [catalogPath, '/tools/mcp/server-card', '/all/mcp/server-card', '/none/mcp/server-card']) {
    for (const headers of [{}, { Authorization: `Bearer ${key.key}` }])
      expect(await get(closed.baseUrl + path, headers)).toMatchObject({ status: 404 });
  }
});

test('public documents name the public URL and the login, and any page may read them', async () => {
  const gateway = await startView({
    ...keyArgs,
    args: ['--listen.serverCards', 'public', '--public-url', publicUrl],
  });
  const catalog = await get(gateway.baseUrl + catalogPath, { Origin: 'https://anywhere.example' });
  expect(catalog.headers).toMatchObject({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' });
  expect(catalog.json.entries[0]).toMatchObject({
    identifier: 'urn:air:tools.example.com:mcp:tools',
    url: `${publicUrl}/tools/mcp/server-card`,
  });
  const { json: card } = await get(`${gateway.baseUrl}/all/mcp/server-card`);
  expectValidCard(card);
  expect(card.name).toBe('com.example.tools/all');
  for (const { url, headers } of card.remotes) {
    expect(url).toMatch(`${publicUrl}/all/`);
    expect(headers).toMatchObject([{ name: 'Authorization', isRequired: true, isSecret: true }]);
  }
  const preflight = await get(`${gateway.baseUrl}/all/mcp/server-card`, { Origin: 'https://a.example' }, 'OPTIONS');
  expect(preflight).toMatchObject({
    status: 204,
    headers: { 'access-control-allow-methods': 'GET', 'access-control-allow-headers': 'Content-Type, If-None-Match' },
  });
});

test('the documents can be turned off, and public ones need the public URL', async () => {
  const gateway = await startLocalGateway({ command: everythingFixture, args: ['--listen.serverCards', 'off'] });
  for (const path of [catalogPath, '/mcp/server-card'])
    expect(await get(gateway.baseUrl + path)).toMatchObject({ status: 404 });
  const without = startLocalGateway({ command: everythingFixture, args: ['--listen.serverCards', 'public'] });
  await expect(without).rejects.toThrow('needs --public-url');
});
