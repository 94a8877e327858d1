import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { makeFolder } from '../fault/moody.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';

export const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The head of a stream. */
export const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** A server whose stream is `onGet`'s, and a gateway in front of it that also has another server, so that it starts. */
export async function startBehind(transport: string, onGet: Handler, onPost: Handler, options: object = {}) {
  const server = createServer((request, response) => {
    if (request.method === 'GET') onGet(request, response);
    else onPost(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse?key=url-secret`;
  const file = join(makeFolder(), 'gangway.json');
  const headers = { Authorization: 'Bearer header-secret' };
  const hostile = { url, transport, headers, startTimeoutMs: 1000, endpointTimeoutMs: 500, ...options };
  writeFileSync(file, JSON.stringify({ mcpServers: { hostile, other: { url: 'tcp://127.0.0.1:1' } } }));
  const gateway = await startGateway({ args: ['--config', file, '--log-level', 'trace'] });
  return { gateway, server };
}

/** P12: what the server and the operator keep secret is nowhere in what the gateway writes, at any level. */
export const expectNoSecret = (gateway: Gateway, ...more: string[]) =>
  expect([gateway.stdout(), gateway.stderr(), ...more].join('\n')).not.toMatch(/(upstream|url|header)-secret/);
