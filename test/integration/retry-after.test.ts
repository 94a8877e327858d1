import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';

type Kind = 'http' | 'sse' | 'modern';

const capabilities = { tools: {} };
const serverInfo = { name: 'refusing', version: '1' };

/** The results of a server whose calls are refused. */
function resultOf(kind: Kind, method: string, params: { protocolVersion?: string }): object | undefined {
  const hints = kind === 'modern' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
  if (method === 'tools/list') return { tools: [{ name: 'any', inputSchema: { type: 'object' } }], ...hints };
  if (method === 'ping') return {};
  if (kind === 'modern')
    return method === 'server/discover'
      ? { supportedVersions: ['2026-07-28'], capabilities, serverInfo, ...hints }
      : undefined;
  return method === 'initialize' ? { protocolVersion: params.protocolVersion, capabilities, serverInfo } : undefined;
}

/** Starts a server that refuses each call of a tool, and names a time. Resolves with its URL. */
async function startRefusing(kind: Kind, status: number, retryAfter: string): Promise<string> {
  let stream: ServerResponse | undefined;
  const eventStream = { 'Content-Type': 'text/event-stream' };
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    if (incoming.method === 'GET' && kind === 'sse') {
      stream = outgoing.writeHead(200, eventStream);
      stream.write('event: endpoint\ndata: /messages\n\n');
      return;
    }
    if (incoming.method !== 'POST' || (kind === 'sse' && incoming.url !== '/messages'))
      return void outgoing.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(await text(incoming));
    if (method === 'tools/call') return void outgoing.writeHead(status, { 'Retry-After': retryAfter }).end('later');
    const result = resultOf(kind, method, params);
    const body = result === undefined ? { error: { code: -32601, message: 'no' } } : { result };
    const answer = JSON.stringify({ jsonrpc: '2.0', id, ...body });
    if (id === undefined || kind === 'sse') outgoing.writeHead(202).end();
    else outgoing.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'one' }).end(answer);
    if (id !== undefined && kind === 'sse') stream?.write(`data: ${answer}\n\n`);
  };
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/${kind === 'sse' ? 'sse' : 'mcp'}`;
}

describe.each([
  ['http', 429, '30'],
  ['sse', 503, '30'],
  ['modern', 429, '30'],
  // A server that names a short time is asked again, and refuses each time.
  ['http', 503, '0'],
] as const)('[P3] the time that a server on %s names with %i and Retry-After: %s', (kind, status, named) => {
  test('reaches clients of both eras, as a header where their answer has a status', async () => {
    await using gateway = await startLocalGateway({ args: [await startRefusing(kind, status, named)] });
    const seconds = Math.max(1, Number(named));
    const error = {
      message: expect.stringContaining(`Retry after ${seconds} s`),
      data: { reason: 'server_overloaded', retryAfterS: seconds },
    };
    const expected = { status: 503, headers: { 'retry-after': String(seconds) }, json: { error } };

    const session = await initialize(gateway.url);
    const call = { method: 'tools/call', params: { name: 'any', arguments: {} } };
    // A client that accepts JSON alone gets no stream, however slow the machine is.
    const headers = { Accept: 'application/json' };
    expect(await session.request(call.method, call.params, { headers })).toMatchObject(expected);

    const client = await connectOld(gateway.baseUrl);
    expect(await client.request(call.method, call.params)).toMatchObject({ error });
    client.drop();

    // Once the answer is a stream, the error alone has the time.
    const modern = await callModern(gateway.url, 'any');
    expect(modern.messages.at(-1)).toMatchObject({ error });
    if (modern.status !== 200) expect(modern).toMatchObject({ status: 503, headers: expected.headers });
  });
});
