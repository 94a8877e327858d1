import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, TestRunner } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';

export const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** What a hostile HTTP+SSE server says at first: the session id is its secret. */
export const endpointEvent = 'event: endpoint\ndata: /messages?sessionId=upstream-secret\n\n';

export const beginStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

export const greet: Handler = (_, response) => void beginStream(response).write(endpointEvent);

export const accept: Handler = (_, response) => void response.writeHead(202).end();

/** Starts a server of which every byte is the test's. One started inside a test is stopped with it. */
export async function startHostile(handle: Handler) {
  const server = createServer(handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(stop);
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

/**
 * A server whose stream is `onGet`'s, and a gateway in front of it that also has another server, so that it starts. Both
 * stop with the test; stop what a hook started in the hook that belongs to it.
 */
export async function startBehind(
  transport: 'auto' | 'sse' | 'http',
  onGet: Handler,
  onPost: Handler,
  options: object = {},
  args: readonly string[] = [],
) {
  const { server, origin, stop } = await startHostile((request, response) => {
    if (request.method === 'GET') onGet(request, response);
    else onPost(request, response);
  });
  const url = `${origin}/sse?key=url-secret`;
  const headers = { Authorization: 'Bearer header-secret' };
  const hostile = {
    url,
    transport,
    headers,
    timeouts: { start: '3s' },
    ...options,
  };
  // The gateway watches its file as long as it runs.
  const folder = await mkdtemp(join(tmpdir(), 'gangway-hostile-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(remove);
  const file = join(folder, 'gangway.json');
  await writeFile(file, JSON.stringify({ mcpServers: { hostile, other: { url: 'tcp://127.0.0.1:1' } } }));
  const gateway = await startGateway({ args: ['--config', file, '--log-level', 'trace', ...args] }).catch(
    async (cause: unknown) => {
      await remove();
      throw cause;
    },
  );
  return {
    gateway,
    server,
    url: `${gateway.baseUrl}/hostile/mcp`,
    async stop() {
      await gateway.stop();
      await remove();
      stop();
    },
  };
}

/** P12: what the server and the operator keep secret is nowhere in what the gateway writes, at any level. */
export const expectNoSecret = (gateway: Gateway, ...more: string[]) =>
  expect([gateway.stdout(), gateway.stderr(), ...more].join('\n')).not.toMatch(/(upstream|url|header)-secret/);
