import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Gateway, startGateway } from '../../../src/app/gateway.ts';
import { readConfiguration } from '../../../src/config/config.ts';
import { createLog } from '../../../src/core/ops/log/log.ts';
import { readLogLevels } from '../../../src/core/ops/log/log-parts.ts';
import { features } from '../../../src/features.ts';

/** Revisions that nobody has published: one more object each in the table, with one more header. */
const invented = '2031-01-01';
const inventedLegacy = '2025-12-01';

vi.mock(import('../../../src/core/protocol/revisions.ts'), async (importOriginal) => {
  const facts = await importOriginal();
  const newest = facts.revisions.at(-1) as (typeof facts.revisions)[number];
  const logLevel = { name: 'Mcp-Log-Level', mirrors: { meta: 'io.modelcontextprotocol/logLevel' } } as const;
  const next = { ...newest, name: '2031-01-01', headers: [...newest.headers, logLevel] };
  const legacy = facts.revisions.filter(({ era }) => era === 'legacy');
  const last = legacy.at(-1) as typeof newest;
  const method = { name: 'Mcp-Method', mirrors: 'method' } as const;
  const later = { ...last, name: '2025-12-01', headers: [...last.headers, method] };
  return { ...facts, revisions: [...legacy, later, newest, next] };
});

const prefix = 'io.modelcontextprotocol/';

interface Received {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string; readonly _meta?: Readonly<Record<string, unknown>> };
}

/** A server of one revision; the headers of its newest call. */
interface StartedServer {
  readonly url: string;
  lastCall(): IncomingHttpHeaders;
  close(): void;
}

const capabilities = { tools: {} };
const tools = [{ name: 'add', inputSchema: { type: 'object' } }];

function answerOf({ method, params }: Received, revision: string, isModern: boolean): object | undefined {
  const complete = isModern ? { resultType: 'complete' } : {};
  if (isModern && params?._meta?.[`${prefix}protocolVersion`] !== revision)
    return { error: { code: -32022, message: 'Unsupported protocol version', data: { supported: [revision] } } };
  if (method === 'initialize' && !isModern)
    return { result: { protocolVersion: revision, capabilities, serverInfo: { name: 'old', version: '1' } } };
  if (method === 'server/discover' && isModern)
    return { result: { ...complete, supportedVersions: [revision], capabilities } };
  if (method === 'tools/list') return { result: { ...complete, tools } };
  if (method === 'tools/call') return { result: { ...complete, content: [{ type: 'text', text: revision }] } };
  return { error: { code: -32601, message: 'Method not found' } };
}

async function startServer(revision: string): Promise<StartedServer> {
  const isModern = revision >= '2026-07-28';
  let lastCall: IncomingHttpHeaders = {};
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = JSON.parse(await text(request)) as Received;
    if (message.id === undefined) return void response.writeHead(202).end();
    if (message.method === 'tools/call') lastCall = request.headers;
    const answer = answerOf(message, revision, isModern);
    const status = isModern && answer !== undefined && 'error' in answer ? 400 : 200;
    const session = isModern ? {} : { 'mcp-session-id': 's' };
    response.writeHead(status, { 'content-type': 'application/json', ...session });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }));
  };
  const server = createServer((request, response) => void respond(request, response)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    lastCall: () => lastCall,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const revisionsOfServers = { old: '2025-11-25', later: inventedLegacy, now: '2026-07-28', next: invented };
let servers: Readonly<Record<string, StartedServer>> = {};
let gateway: Gateway;

beforeAll(async () => {
  const started = Object.entries(revisionsOfServers).map(
    async ([name, revision]) => [name, await startServer(revision)] as const,
  );
  servers = Object.fromEntries(await Promise.all(started));
  const file = JSON.stringify({
    servers: Object.fromEntries(Object.entries(servers).map(([name, { url }]) => [name, { url }])),
  });
  const argv = ['--config', 'gateway.json', '--host', '127.0.0.1', '--port', '0', '--admin-port', '0'];
  const read = () => readConfiguration({ argv, env: {}, readFile: () => file });
  const configuration = read();
  if (!configuration.ok || !('config' in configuration)) throw new Error(JSON.stringify(configuration));
  const levels = readLogLevels('error');
  if (!levels.ok) throw new Error('no such level');
  gateway = await startGateway({
    config: configuration.config,
    features,
    source: { files: [], states: [], read },
    environment: {},
    log: createLog({ levels: levels.levels, isPretty: false, hasColors: false }),
    onUseless: (message) => {
      throw new Error(message);
    },
    onDrain: () => undefined,
  });
});

afterAll(async () => {
  await gateway.close();
  for (const server of Object.values(servers)) server.close();
});

async function post(server: string, message: object, headers: Readonly<Record<string, string>> = {}) {
  const url = gateway.urls.find((urls) => urls.server === server)?.url as string;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  const body = await response.text();
  const json = body.startsWith('{')
    ? body
    : body
        .split('\n')
        .findLast((line) => line.startsWith('data: {'))
        ?.slice(6);
  return {
    status: response.status,
    headers: response.headers,
    answer: json === undefined ? undefined : JSON.parse(json),
  };
}

/** A call of a client of a modern revision. */
function call(server: string, revision: string, further: Readonly<Record<string, string>> = {}) {
  const _meta = {
    [`${prefix}protocolVersion`]: revision,
    [`${prefix}clientCapabilities`]: {},
    [`${prefix}logLevel`]: 'warning',
  };
  const headers = { 'mcp-protocol-version': revision, 'mcp-method': 'tools/call', 'mcp-name': 'add', ...further };
  return post(server, { id: 1, method: 'tools/call', params: { name: 'add', arguments: {}, _meta } }, headers);
}

const answered = (revision: string) => ({ result: { content: [{ type: 'text', text: revision }] } });

describe('a revision that is one more object in the table', () => {
  test.each(['old', 'next'] as const)('its client gets a call through to the server %s', async (server) => {
    const { status, answer } = await call(server, invented, { 'mcp-log-level': 'warning' });
    expect([status, answer]).toMatchObject([200, answered(revisionsOfServers[server])]);
  });

  test('its server gets its header', async () => {
    await call('next', invented, { 'mcp-log-level': 'warning' });
    expect(servers['next']?.lastCall()).toMatchObject({
      'mcp-protocol-version': invented,
      'mcp-name': 'add',
      'mcp-log-level': 'warning',
    });
  });

  test('its client is refused without its header, and a client of another revision is not', async () => {
    const lacking = await call('old', invented);
    expect([lacking.status, lacking.answer]).toMatchObject([400, { error: { data: { header: 'Mcp-Log-Level' } } }]);
    const { answer } = await call('old', '2026-07-28');
    expect(answer).toMatchObject(answered('2025-11-25'));
  });

  test('its client learns which revision a server has that does not serve it, and gets through with that', async () => {
    const { status, answer } = await call('now', invented, { 'mcp-log-level': 'warning' });
    expect([status, answer]).toMatchObject([400, { error: { code: -32022, data: { supported: ['2026-07-28'] } } }]);
    const { answer: second } = await call('now', '2026-07-28');
    expect(second).toMatchObject(answered('2026-07-28'));
  });

  test.each([
    ['old', '2025-11-25'],
    ['later', inventedLegacy],
    ['now', '2025-11-25'],
    ['next', '2025-11-25'],
    ['next', inventedLegacy],
  ] as const)('a legacy client gets a call through to the server %s with %s', async (server, protocolVersion) => {
    const clientInfo = { name: 'c', version: '1' };
    const params = { protocolVersion, capabilities: {}, clientInfo };
    const opened = await post(server, { id: 1, method: 'initialize', params });
    expect(opened.answer).toMatchObject({ result: { protocolVersion, capabilities } });
    const session = {
      'mcp-session-id': opened.headers.get('mcp-session-id') as string,
      'mcp-protocol-version': protocolVersion,
    };
    await post(server, { method: 'notifications/initialized' }, session);
    const { answer } = await post(
      server,
      { id: 2, method: 'tools/call', params: { name: 'add', arguments: {} } },
      session,
    );
    expect(answer).toMatchObject(answered(revisionsOfServers[server]));
    if (server === 'later') expect(servers['later']?.lastCall()).toMatchObject({ 'mcp-method': 'tools/call' });
  });
});
