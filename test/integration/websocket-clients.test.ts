import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeFolder } from '../fault/moody.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize as initializeHttp } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { stillAlive } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  connectWebSocket,
  refusedHandshake,
  type WebSocketClient,
  webSocketUrlOf,
} from '../support/websocket-client.ts';

const child = (name: string, ...args: string[]) => [
  process.execPath,
  `${root}test/fixtures/children/${name}.mjs`,
  ...args,
];

describe('a client on WebSocket', () => {
  let gateway: LocalGateway;
  let url: string;
  beforeAll(async () => {
    gateway = await startLocalGateway({ command: everythingFixture });
    url = webSocketUrlOf(gateway.url);
  });
  afterAll(() => gateway?.stop());

  async function open(capabilities: object = {}): Promise<WebSocketClient> {
    const client = await connectWebSocket(url);
    expect(await client.initialize('2025-11-25', capabilities)).toMatchObject({
      result: { protocolVersion: '2025-11-25' },
    });
    return client;
  }

  test.each([
    '{"n":12345678901234567890}',
    '{"n":1e400,"m":-1E+400}',
    '{"a":{"k":1,"k":2}}',
    '{"s":"a\u2028b\u2029c ä€🌍 \\u0041\\/"}',
    '{"z":1, "1":2 ,\t"a" : [ ] }',
  ])('[P1] sends and gets the text as it is: %s', async (json) => {
    const client = await open();
    const request = `{"params":{"arguments":{"x":${json}},"name":"echo_line"},"id":"e","jsonrpc":"2.0","method":"tools/call"}`;
    client.send(request);
    expect((await client.next(({ id }) => id === 'e')).result.content[0].text).toBe(request);
    client.send({ jsonrpc: '2.0', id: 'r', method: 'tools/call', params: { name: 'raw_result', arguments: { json } } });
    expect((await client.received.next(({ message }) => message.id === 'r')).text).toBe(
      `{"jsonrpc":"2.0","id":"r","result":${json}}`,
    );
  });

  test('[P1] may break lines in a message, send it in fragments, and sees those of the server flattened', async () => {
    const client = await open();
    client.peer.send('{"jsonrpc":"2.0",\r\n"id":"f",', { fin: false });
    client.peer.send('\n"method":"ping"}', { fin: true });
    expect(await client.next(({ id }) => id === 'f')).toMatchObject({ result: {} });
  });

  test('[P2] hears everything in the order in which the server has it', async () => {
    const client = await open();
    const calls = [1, 2].map((id) => client.callTool('progress', { count: 50, gapMs: 0, marker: `m${id}` }, `c${id}`));
    await Promise.all(calls);
    for (const id of ['c1', 'c2']) {
      const mine = client.received.items
        .map(({ message }) => message)
        .filter((message) => message.id === id || message.params?.progressToken === id);
      expect(mine.map(({ params }) => params?.progress)).toEqual([
        ...Array.from({ length: 50 }, (_, n) => n + 1),
        undefined,
      ]);
    }
  });

  test('answers what the server asks', async () => {
    const client = await open({ roots: {} });
    const call = client.callTool('roots');
    const question = await client.next(({ method }) => method === 'roots/list');
    client.send({ jsonrpc: '2.0', id: question.id, result: { roots: [{ uri: 'file:///r' }] } });
    expect(JSON.parse((await call).result.content[0].text)).toEqual([{ uri: 'file:///r' }]);
  });

  test('[P11] and another with the same ids hear each their own, and none is reached from /mcp', async () => {
    const clients = await Promise.all([open(), open()]);
    await Promise.all(
      clients.map(async (client, who) => {
        for (let id = 1; id <= 20; id++) {
          const marker = `client ${who}, call ${id}`;
          const { result } = await client.callTool('progress', { count: 2, gapMs: 0, marker }, id);
          expect(result.content[0].text).toBe(marker);
        }
        for (const { text } of client.received.items) expect(text).not.toContain(`client ${1 - who}`);
      }),
    );
    const session = await initializeHttp(gateway.url);
    expect((await session.request('ping')).status).toBe(200);
  });

  test('that vanishes takes its session, its process and its call with it', async () => {
    const before = await gateway.descendants();
    const client = await open();
    void client.callTool('wait_for_cancel', { key: 'k' }).catch(() => undefined);
    const started = await waitFor(
      async () => {
        const found = (await gateway.descendants()).filter(({ pid }) => !before.some((other) => other.pid === pid));
        return found.length > 0 && found;
      },
      { what: 'the process' },
    );
    client.peer.terminate();
    await waitFor(async () => (await stillAlive(started)).length === 0, { what: 'the end of the process' });
  });
});

describe('a client on WebSocket, large messages', () => {
  test('answers larger than an event of a log may be pass, one behind the other, also to one that reads late', async () => {
    const args = ['--replay.maxSize', '200000B'];
    const gateway = await startLocalGateway({ args, command: everythingFixture });
    const client = await connectWebSocket(webSocketUrlOf(gateway.url));
    await client.initialize();
    client.peer.pause();
    const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(3_000_000));
    const calls = texts.map((text) => client.callTool('echo', { text }));
    const small = client.callTool('echo', { text: 'small' });
    await new Promise((resolve) => setTimeout(resolve, 500)); // in which the gateway sees that nothing is read
    client.peer.resume();
    const results = (await Promise.all([...calls, small])).map(({ result }) => result.content[0].text);
    expect(results.map((text) => `${text.length}${text[0]}`)).toEqual([
      '3000000a',
      '3000000b',
      '3000000c',
      '3000000d',
      '5s',
    ]);
  });
});

describe('with several servers', () => {
  test('each has its endpoint, and --defaults.ws=false turns off all or one', async () => {
    const folder = makeFolder();
    const file = join(folder, 'gangway.json');
    const [command, ...args] = child('mini-server');
    writeFileSync(file, JSON.stringify({ mcpServers: { on: { command, args }, off: { command, args, ws: false } } }));
    const gateway = await startLocalGateway({ args: ['--config', file] });
    const base = `ws://127.0.0.1:${gateway.port}`;
    const client = await connectWebSocket(`${base}/on/ws?x=1`);
    expect((await client.initialize()).result.serverInfo.name).toBe('mini');
    for (const path of ['/off/ws', '/on/socket', '/ws', '/']) {
      expect(await refusedHandshake(base + path)).toMatchObject({
        status: 404,
        json: { error: { data: { reason: 'no_such_path' } } },
      });
    }
    const without = await startLocalGateway({ args: ['--defaults.ws=false'], command: child('mini-server') });
    expect((await refusedHandshake(webSocketUrlOf(without.url))).status).toBe(404);
  });
});
