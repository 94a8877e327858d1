import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Exchange, initialize } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { callModern, type ModernOptions, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { clientSecret, startTokenEndpoint, type TokenEndpoint } from '../support/token-endpoint.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';

const users = Array.from({ length: 100 }, (_, n) => `user-${n}`);
/** Calls of both eras together. More of them: `EXCHANGE_CALLS=10000`. */
const calls = Number(process.env['EXCHANGE_CALLS'] ?? 2_000);
const publicUrl = 'https://mcp.example.com';

let issuer: Issuer;
let endpoints: Readonly<Record<'legacy' | 'modern', TokenEndpoint>>;
let legacy: TokenServer;
let modern: { readonly url: string; readonly refused: number; close(): void };
let gateway: Gateway;
let folder: string;
const agent = new Agent({ keepAlive: true, maxSockets: 50 });

/** A modern server whose answers, lists, tasks and changes are those of the user of the token. */
async function startModernServer(): Promise<typeof modern> {
  let refused = 0;
  const owners = new Map<string, string>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const user = endpoints.modern.userOf(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '');
    if (user === undefined) {
      refused += 1;
      return void response.writeHead(401).end();
    }
    if (method === 'subscriptions/listen') {
      const send = (name: string, more: object): void => {
        const message = { jsonrpc: '2.0', method: name, params: { _meta: { [metaKeys.subscriptionId]: id }, ...more } };
        response.write(`data: ${JSON.stringify(message)}\n\n`);
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      send('notifications/subscriptions/acknowledged', { notifications: { toolsListChanged: true } });
      return send('notifications/tools/list_changed', { user });
    }
    if (method === 'tools/call' && params.name === 'begin') owners.set(`task-${owners.size}`, user);
    const taskId = `task-${owners.size - 1}`;
    const isTask = method === 'tools/call' && params.name === 'begin';
    const times = { createdAt: new Date().toISOString(), ttlMs: 600_000, pollIntervalMs: 100 };
    const task = { resultType: 'task', taskId, status: 'working', ...times };
    const results: Record<string, object> = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true } } },
      'tools/list': { tools: [{ name: `of-${user}`, inputSchema: { type: 'object' } }], ttlMs: 60_000 },
      'tools/call': { content: [{ type: 'text', text: user }] },
      'tasks/get': { ...task, resultType: 'complete', taskId: params?.taskId, statusMessage: user },
    };
    const result = isTask ? task : { resultType: 'complete', ...results[method] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    get refused() {
      return refused;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

beforeAll(async () => {
  issuer = await startIssuer();
  folder = await mkdtemp(join(tmpdir(), 'gangway-exchange-'));
  endpoints = { legacy: await startTokenEndpoint(), modern: await startTokenEndpoint() };
  for (const endpoint of Object.values(endpoints)) {
    // Tokens expire many times in a run, and the endpoint is slow enough for calls to meet at it.
    endpoint.lifetimeS = 3;
    endpoint.delayMs = 20;
  }
  legacy = await startTokenServer((token) => endpoints.legacy.userOf(token) !== undefined);
  modern = await startModernServer();
  await writeFile(join(folder, 'secret'), clientSecret);
  const identityAt = ({ url: tokenUrl }: TokenEndpoint): object => ({
    grant: 'token_exchange',
    tokenUrl,
    clientId: 'gateway',
    clientSecret: `\${file:${join(folder, 'secret')}}`,
  });
  const mcpServers = {
    legacy: { url: legacy.urls.http, era: 'legacy', identity: identityAt(endpoints.legacy) },
    modern: { url: modern.url, era: 'modern', identity: identityAt(endpoints.modern) },
  };
  await writeFile(join(folder, 'gangway.json'), JSON.stringify({ mcpServers }));
  const oauth = ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl];
  const limits = ['--limits.user.sessions', '10'];
  gateway = await startGateway({
    args: [...oauth, ...limits, '--log-level', 'debug', '--config', join(folder, 'gangway.json')],
  });
});
afterAll(async () => {
  agent.destroy();
  await gateway.stop();
  for (const each of [endpoints.legacy, endpoints.modern, legacy, modern]) each.close();
  await issuer.close();
  await rm(folder, { recursive: true });
});

/** A new access token for the gateway. */
async function login(user: string, server: string): Promise<{ authorization: string }> {
  const claims = { sub: user, aud: `${publicUrl}/${server}/mcp`, jti: `${Math.random()}` };
  return { authorization: `Bearer ${await issuer.token({ claims })}` };
}

const userIn = (token: string): string | undefined => /-of-(.+)$/.exec(token)?.[1];

test(`[P11] ${calls} calls of 100 users with tokens of 3 s: nobody sees the token, result, list, task or changes of another`, {
  timeout: 600_000,
}, async () => {
  const each = Math.ceil(calls / users.length / 2);
  const tasks = new Map<string, string>();
  const streams: Exchange[] = [];
  const seen = { results: 0, lists: 0, changes: 0, foreignTasks: 0, ownTasks: 0 };

  const ofLegacy = async (user: string): Promise<void> => {
    const url = `${gateway.baseUrl}/legacy/mcp`;
    const session = await initialize(url, { headers: await login(user, 'legacy'), agent });
    let headers = await login(user, 'legacy');
    for (let n = 0; n < each; n++) {
      if (n % 10 === 9) headers = await login(user, 'legacy'); // the client renews its own token, too
      const { messages } = await session.request('tools/call', { name: 'token', arguments: {} }, { headers });
      const text: string | undefined = messages[0]?.result?.content[0].text;
      expect(userIn(toldToken(text ?? '')), JSON.stringify(messages)).toBe(user);
      seen.results += 1;
    }
  };

  const ofModern = async (user: string, index: number): Promise<void> => {
    const url = `${gateway.baseUrl}/modern/mcp`;
    const optionsOf = async (): Promise<ModernOptions> => ({
      headers: await login(user, 'modern'),
      agent,
      meta: { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    });
    let options = await optionsOf();
    const { agent: _, ...alone } = options;
    const stream = await openModern(url, 'subscriptions/listen', { notifications: { toolsListChanged: true } }, alone);
    streams.push(stream);
    const { params } = await stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    expect(params.user).toBe(user);
    seen.changes += 1;
    const begun = await callModern(url, 'begin', {}, options);
    tasks.set(user, begun.json.result.taskId);
    for (let n = 0; n < each; n++) {
      if (n % 10 === 9) options = await optionsOf();
      if (n % 10 === 5) {
        const list = await postModern(url, 'tools/list', {}, options);
        expect(list.json.result.tools[0].name).toBe(`of-${user}`);
        seen.lists += 1;
        continue;
      }
      const { json } = await callModern(url, 'whoami', {}, options);
      expect(json.result?.content[0].text, JSON.stringify(json)).toBe(user);
      seen.results += 1;
    }
    const get = (taskId: string) =>
      postModern(url, 'tasks/get', { taskId }, { ...options, headers: { ...options.headers, 'Mcp-Name': taskId } });
    const own = await get(tasks.get(user) ?? '');
    expect(own.json.result.statusMessage).toBe(user);
    seen.ownTasks += 1;
    const foreign = tasks.get(users[(index + 1) % users.length] ?? '');
    if (foreign === undefined) return;
    expect((await get(foreign)).json.error?.code).toBe(-32602);
    seen.foreignTasks += 1;
  };

  await Promise.all(users.flatMap((user, index) => [ofLegacy(user), ofModern(user, index)]));
  for (const stream of streams) stream.drop();
  expect(seen.results + seen.lists).toBe(2 * each * users.length);
  expect(seen).toMatchObject({ changes: 100, ownTasks: 100 });
  expect(seen.foreignTasks).toBeGreaterThan(50);
  for (const { mostAtOnce } of Object.values(endpoints)) expect(mostAtOnce).toBe(1);
  expect(gateway.stdout() + gateway.stderr()).not.toMatch(/upstream-token-\d|eyJ[\w-]{10}|secret-of-the-gateway/);
  const exchanges = Object.values(endpoints).map(({ requests }) => requests.length);
  process.stderr.write(`${JSON.stringify({ ...seen, exchanges, refused: modern.refused })}\n`);
});
