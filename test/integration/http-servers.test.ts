import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { featuresAt, featuresOfFixture } from '../support/sdk-features.ts';

interface Running {
  readonly url: string;
  stop(): Promise<unknown>;
}

async function serve(listener: RequestListener): Promise<Running> {
  const server = createHttpServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('in front of another gateway', () => {
  let server: LocalGateway;
  let gateway: LocalGateway;
  beforeAll(async () => {
    server = await startLocalGateway({ command: everythingFixture, isStoppedWithTest: false });
    gateway = await startLocalGateway({ args: [server.url], isStoppedWithTest: false });
  });
  afterAll(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  describe.each([
    ['@modelcontextprotocol/sdk (v1)', connectV1],
    ['@modelcontextprotocol/client (v2)', connectV2],
  ] as const)('with %s as the client', (_client, connect) => {
    let client: SdkClient;
    beforeAll(async () => {
      client = await connect(gateway.url);
    });
    afterAll(() => client?.close());

    test.each(featuresAt(featuresOfFixture, '2025-11-25'))('%s', (_feature, run) => run(client));

    test('DELETE ends the session', async () => {
      const other = await connect(gateway.url);
      await other.terminateSession();
      await other.close();
      await client.ping();
    });
  });
});

test('a server of the SDK in version 2, which keeps no sessions', async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'v2', version: '2' });
    const inputSchema = fromJsonSchema<{ text: string }>({ type: 'object', properties: { text: { type: 'string' } } });
    server.registerTool('echo', { inputSchema }, async ({ text }) => ({ content: [{ type: 'text', text }] }));
    return server;
  });
  const server = await serve(getRequestListener((request) => handler.fetch(request), { overrideGlobalObjects: false }));
  try {
    const gateway = await startLocalGateway({ args: [server.url] });
    const session = await initialize(gateway.url);
    expect((await session.callTool('echo', { text: 'ä' })).content[0].text).toBe('ä');
    const calls = Array.from({ length: 20 }, (_, n) => session.callTool('echo', { text: String(n) }));
    expect((await Promise.all(calls)).map(({ content }) => content[0].text)).toEqual(calls.map((_, n) => String(n)));
    expect((await session.delete()).status).toBeLessThan(300);
    expect(gateway.logs().filter(({ msg }) => msg === 'detected the transport of the server')).toMatchObject([
      { transport: 'http' },
    ]);
  } finally {
    await server.stop();
  }
});
