import { readFile } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { sendRaw } from '../hardening/raw-http.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { postModern } from '../support/modern-client.ts';
import { shownIn, showsVariables, variableOf, variableOfModern } from '../support/shown-variables.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

const tokenOf = (token: string) => ({ 'X-Github-Token': token });
const credential = ['--defaults.credentials', 'GITHUB_TOKEN={header:X-GitHub-Token}'] as const;

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ args: ['--log-level', 'trace', ...credential], command: showsVariables });
});
afterAll(async () => {
  await gateway.stop();
});

const openFor = (token: string): Promise<Session> => initialize(gateway.url, { headers: tokenOf(token) });

/** Ends the process of a session, and resolves when the gateway has noticed. */
async function crash(session: Session, name = 'GITHUB_TOKEN'): Promise<number> {
  const { pid } = await variableOf(session, name);
  const ends = () => gateway.logs().filter(({ msg }) => msg === 'server ended').length;
  const before = ends();
  process.kill(pid, 'SIGKILL');
  await waitFor(() => ends() > before, { what: 'the gateway to notice the end' });
  return pid;
}

describe('[P11] two users of one STDIO server see their own credentials alone', () => {
  test('in sessions', async () => {
    const [a, b] = await Promise.all([openFor('alice-secret'), openFor('bob-secret')]);
    const [ofA, ofB] = await Promise.all([a, b].map((session) => variableOf(session, 'GITHUB_TOKEN')));
    expect([ofA?.value, ofB?.value]).toEqual(['alice-secret', 'bob-secret']);
    expect(ofA?.pid).not.toBe(ofB?.pid);
    await Promise.all([a.delete(), b.delete()]);
  });

  test.each(['request', 'user'])('in requests of the modern era, share %s', async (share) => {
    const args = ['--share', share, ...credential];
    const { url } = await startGateway({ args, command: showsVariables });
    const show = (token: string) => variableOfModern(url, 'GITHUB_TOKEN', { headers: tokenOf(token) });
    const shown = await Promise.all(['alice', 'bob', 'alice', 'bob'].map(show));
    expect(shown.map(({ value }) => value)).toEqual(['alice', 'bob', 'alice', 'bob']);
    expect(new Set(shown.map(({ pid }) => pid)).size).toBe(share === 'user' ? 2 : 4);
  });

  test.each([
    ['HTTP+SSE', 'sse', SSEClientTransport],
    ['Streamable HTTP', 'mcp', StreamableHTTPClientTransport],
  ])('on %s, with clients of the official SDK', async (_, path, Transport) => {
    const seen = await Promise.all(
      ['alice', 'bob'].map(async (name) => {
        const client = new Client({ name, version: '1' });
        onTestFinished(() => client.close());
        const transport = new Transport(new URL(`${gateway.baseUrl}/${path}`), {
          requestInit: { headers: tokenOf(name) },
        });
        // biome-ignore lint/suspicious/noExplicitAny: the SDK's transport is not typed for exactOptionalPropertyTypes
        await client.connect(transport as any);
        return shownIn('GITHUB_TOKEN', await client.callTool({ name: 'show', arguments: { names: ['GITHUB_TOKEN'] } }))
          .value;
      }),
    );
    expect(seen).toEqual(['alice', 'bob']);
  });

  test('on WebSocket', async () => {
    const seen = await Promise.all(
      ['alice', 'bob'].map(async (name) => {
        const client = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: tokenOf(name) });
        await client.initialize();
        const { result } = await client.callTool('show', { names: ['GITHUB_TOKEN'] });
        return shownIn('GITHUB_TOKEN', result).value;
      }),
    );
    expect(seen).toEqual(['alice', 'bob']);
  });
});

describe('a request without the credentials of its server', () => {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const lacking = { reason: 'credential_missing', header: 'x-github-token' };

  test('is told which header is missing, in either era and in the middle of a session', async () => {
    const opening = await post(gateway.url, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    expect([opening.status, opening.json.error.data]).toEqual([400, lacking]);
    const modern = await postModern(gateway.url, 'tools/list');
    expect([modern.status, modern.json.error.data]).toEqual([400, lacking]);
    const session = await openFor('mine');
    const own = { 'Mcp-Session-Id': session.id };
    const inSession = await post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, own);
    expect([inSession.status, inSession.json.error.data]).toEqual([400, lacking]);
    await session.delete();
  });

  test('[P11] and one with those of somebody else finds no session', async () => {
    const session = await openFor('mine');
    for (const token of ['theirs', 'mine ', 'Mine']) {
      const headers = { 'Mcp-Session-Id': session.id, ...tokenOf(token) };
      const stolen = await post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, headers);
      const isSame = token.trim() === 'mine'; // white space around a value is no part of it
      expect([token, stolen.status]).toEqual([token, isSame ? 200 : 404]);
    }
    await session.delete();
  });

  test('[B18] twice is refused', async () => {
    const lines = [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      'Content-Length: 2',
      'X-GitHub-Token: a',
      'X-Github-Token: b',
    ];
    const { status, json } = await sendRaw(gateway.port, `${lines.join('\r\n')}\r\n\r\n{}`);
    expect([status, json.error.data.reason]).toEqual([400, 'duplicate_header']);
  });
});

describe('a server that is lost', () => {
  test('is started again by the next request, which brings the credentials', async () => {
    const session = await openFor('first');
    const restored = () => gateway.logs().filter(({ msg }) => msg === 'server restored').length;
    const before = restored();
    const pid = await crash(session);
    expect(
      (await post(gateway.url, { jsonrpc: '2.0', id: 9, method: 'ping' }, { 'Mcp-Session-Id': session.id })).status,
    ).toBe(400);
    expect(restored()).toBe(before);
    const again = await variableOf(session, 'GITHUB_TOKEN');
    expect(again.value).toBe('first');
    expect(again.pid).not.toBe(pid);
    expect(restored()).toBe(before + 1);
    await session.delete();
  });

  test('is started again for the next request of the modern era', async () => {
    const args = ['--share', 'user', ...credential];
    const { url, logs } = await startGateway({ args, command: showsVariables });
    const show = () => variableOfModern(url, 'GITHUB_TOKEN', { headers: tokenOf('dave') });
    const before = await show();
    process.kill(before.pid, 'SIGKILL');
    await waitFor(() => logs().some(({ msg }) => msg === 'server ended'), { what: 'the gateway to notice the end' });
    const after = await show();
    expect([after.value, after.pid === before.pid]).toEqual(['dave', false]);
  });

  test('[P3] is started again with those of a call that is run again, and answers it', async () => {
    const session = await openFor('first');
    const list = session.request('resources/list', { cursor: 'x' });
    const pid = await crash(session);
    const { value, pid: next } = await variableOf(session, 'GITHUB_TOKEN');
    expect([value, next === pid]).toEqual(['first', false]);
    await session.callTool('open');
    expect((await list).messages.at(-1).result).toEqual({ resources: [] });
    await session.delete();
  });
});

test('[P11] clients that the gateway knows are told apart by who they are, also where they bring the same', async () => {
  const keys = { alice: 'a'.repeat(40), bob: 'b'.repeat(40) };
  const env = {
    GANGWAY_API_KEYS: Object.entries(keys)
      .map(([user, key]) => `${user}:sha256:${digestOfKey(key)}`)
      .join(),
  };
  const args = ['--observe.audit', 'stdout', ...credential, '--defaults.credentials', 'USER_NAME=user {claim:sub}'];
  const { url, logs } = await startGateway({ args, env, command: showsVariables });
  const of = (name: keyof typeof keys) => ({ ...tokenOf('same'), Authorization: `Bearer ${keys[name]}` });
  const names = ['alice', 'bob'] as const;
  const sessions = await Promise.all(names.map((name) => initialize(url, { headers: of(name) })));
  const shown = await Promise.all(sessions.map((session) => variableOf(session, 'USER_NAME')));
  expect(shown.map(({ value }) => value)).toEqual(['user alice', 'user bob']);
  const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const stolen = await post(url, body, { 'Mcp-Session-Id': sessions[0]?.id, ...of('bob') });
  expect(stolen.status).toBe(404);
  const modern = await Promise.all(names.map((name) => variableOfModern(url, 'USER_NAME', { headers: of(name) })));
  expect(modern.map(({ value }) => value)).toEqual(['user alice', 'user bob']);
  // An audit is of users, and tells nothing of what they brought.
  const audited = logs().flatMap(({ principal }) => (principal === undefined ? [] : [principal]));
  expect(audited).toContainEqual({ issuer: 'api-key', subject: 'alice' });
  expect(JSON.stringify(audited)).not.toContain('credentials');
});

test('[P8] who brings another token at each time has no more sessions than others', async () => {
  const key = 'a'.repeat(40);
  const args = ['--limits.user.sessions', '1', ...credential];
  const { url } = await startGateway({
    args,
    env: { GANGWAY_API_KEYS: `alice:sha256:${digestOfKey(key)}` },
    command: showsVariables,
  });
  const headersOf = (token: string) => ({ ...tokenOf(token), Authorization: `Bearer ${key}` });
  await initialize(url, { headers: headersOf('one') });
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const second = await post(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, headersOf('two'));
  expect(second.status).toBe(429);
});

test('[P12] credentials stand on no command line, in no log and in no error', async () => {
  const session = await openFor('canary-9f1c');
  const { pid } = await variableOf(session, 'GITHUB_TOKEN');
  expect(await readFile(`/proc/${pid}/environ`, 'latin1')).toContain('canary-9f1c');
  const processes = [gateway.pid, ...(await gateway.descendants()).map((each) => each.pid)];
  expect(processes).toContain(pid);
  for (const each of processes) expect(await readFile(`/proc/${each}/cmdline`, 'latin1')).not.toContain('canary');
  await crash(session);
  const failed = await session.request('tools/call', { name: 'exit' });
  expect(failed.messages.at(-1).error.data.reason).toBe('server_exited');
  expect(failed.text).not.toContain('canary');
  await session.delete();
  expect(gateway.stdout() + gateway.stderr()).not.toContain('canary');
});

describe.each(['sse', 'http'] as const)('a remote server of %s', (transport) => {
  let server: TokenServer;
  let remote: Gateway;
  beforeAll(async () => {
    server = await startTokenServer();
    const mapped = ['--defaults.credentials', 'Authorization=Bearer {header:X-GitHub-Token}'];
    remote = await startGateway({
      args: ['--log-level', 'trace', '--transport', transport, ...mapped, server.urls[transport]],
    });
  });
  afterAll(async () => {
    await remote.stop();
    server.close();
  });
  const tokenOfCall = async (session: Session, token: string): Promise<string> => {
    const options = { headers: tokenOf(token) };
    const { messages } = await session.request('tools/call', { name: 'token', arguments: {} }, options);
    return toldToken(messages[0]?.result?.content[0].text ?? '');
  };

  test('[P11] gets the credentials of each client in the header that it wants, and no other header', async () => {
    const [a, b] = await Promise.all(
      ['alice-secret', 'bob-secret'].map((token) => initialize(remote.url, { headers: tokenOf(token) })),
    );
    const told = [tokenOfCall(a as Session, 'alice-secret'), tokenOfCall(b as Session, 'bob-secret')];
    expect(await Promise.all(told)).toEqual(['alice-secret', 'bob-secret']);
    for (const { headers } of server.seen) expect(headers).not.toHaveProperty('x-github-token');
    await Promise.all([a?.delete(), b?.delete()]);
    expect(remote.stdout() + remote.stderr()).not.toContain('-secret');
  });

  test('gets a token that was renewed at once, and no request without one', async () => {
    const session = await initialize(remote.url, { headers: tokenOf('old') });
    expect(await tokenOfCall(session, 'new')).toBe('new');
    const seen = server.seen.length;
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { status, json } = await post(remote.url, body, { 'Mcp-Session-Id': session.id });
    expect([status, json.error.data.reason]).toEqual([400, 'credential_missing']);
    expect(server.seen.length).toBe(seen);
    await session.delete();
  });
});
