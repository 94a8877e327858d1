import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectWebSocket, refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';
import { connectRaw, requestText, sendRaw } from './raw-http.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';

let gateway: LocalGateway;
let url: string;
/** A session of somebody else, whose server must never hear of any of this. */
let other: RecordedSession;
beforeAll(async () => {
  gateway = await startLocalGateway(withRecorder());
  url = webSocketUrlOf(gateway.url);
  other = await openRecorded(gateway.url);
});
afterAll(async () => {
  expect(await other.lines()).toEqual([]);
  await gateway?.stop();
});

const reasonOf = async (headers: Record<string, string>) => {
  const { status, json } = await refusedHandshake(url, { headers });
  return [status, json.error.data.reason];
};

describe('[B18] [A02] [S05] a web page that makes a browser connect', () => {
  it.each([
    'https://evil.example',
    'http://192.168.1.10',
    'http://[::1].evil',
    'http://localhost.evil',
    'null',
    'http://localhost, http://evil',
  ])('is refused before there is a WebSocket: Origin %s', async (Origin) => {
    expect(await reasonOf({ Origin })).toEqual([403, 'origin_not_allowed']);
  });

  it.each(['evil.example', '127.0.0.1.evil.example', '10.0.0.1'])(
    'is refused by the name that it used: Host %s',
    async (Host) => {
      expect(await reasonOf({ Host })).toEqual([403, 'host_not_allowed']);
    },
  );

  it.each(['http://localhost', 'http://127.0.0.1:3000', 'https://[::1]'])(
    'is served if it is local: Origin %s',
    async (Origin) => {
      const client = await connectWebSocket(url, { headers: { Origin } });
      expect((await client.initialize()).result).toBeDefined();
    },
  );
});

const handshake = (...headers: string[]): string[] => [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  ...['Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', ...headers],
];
const local = 'Host: 127.0.0.1';

describe('a handshake', () => {
  it.each([
    ['no Host', handshake(), 400],
    ['two Hosts', handshake(local, 'Host: evil.example'), 400],
    ['two Origins', handshake(local, 'Origin: http://localhost', 'Origin: https://evil.example'), 400],
    ['two Authorizations', handshake(local, 'Authorization: Bearer a', 'Authorization: Bearer b'), 400],
    ['a Host that is none', handshake('Host: user@127.0.0.1'), 400],
    ['two keys', handshake(local, 'Sec-WebSocket-Key: BBBBBBBBBBBBBBBBBBBBBA=='), 400],
    [
      'a bad key',
      [local, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x'],
      400,
    ],
    ['another subprotocol', handshake(local, 'Sec-WebSocket-Protocol: chat'), 400],
  ])('with %s is refused, and the connection closed', async (_, headers, status) => {
    const connection = await connectRaw(gateway.port);
    connection.write(requestText('GET /ws HTTP/1.1', headers));
    expect((await connection.answer()).status).toBe(status);
    await connection.closed();
  });

  it('of another version is told which there is', async () => {
    const headers = handshake(local).map((line) => line.replace('Version: 13', 'Version: 12'));
    const answer = await sendRaw(gateway.port, requestText('GET /ws HTTP/1.1', headers));
    expect([answer.status, answer.headers.get('sec-websocket-version')]).toEqual([400, '13']);
    expect(answer.json.error.data.reason).toBe('bad_handshake');
  });

  it('may offer several subprotocols, of which mcp is chosen, or none, and no compression is taken', async () => {
    for (const [protocols, chosen] of [
      [['chat', 'mcp'], 'mcp'],
      [[], ''],
    ] as const) {
      const { peer } = await connectWebSocket(url, { protocols });
      expect([peer.protocol, peer.extensions]).toEqual([chosen, '']);
    }
  });

  it('may name the path with one slash at the end', async () => {
    const client = await connectWebSocket(`${url}/`);
    expect((await client.initialize()).result).toBeDefined();
  });

  it.each(['/mcp', '/healthz', '/nowhere', '/ws//', '//ws', '//ws/', '/ws%2f'])('at %s is refused', async (path) => {
    expect((await refusedHandshake(url.replace(/\/ws$/, path))).status).toBe(404);
  });

  it('by POST, or without an upgrade, is none', async () => {
    const posted = await sendRaw(gateway.port, requestText('POST /ws HTTP/1.1', handshake(local)));
    expect([posted.status, posted.json.error.data.reason]).toEqual([400, 'bad_handshake']);
    const plain = await sendRaw(gateway.port, requestText('GET /ws HTTP/1.1', [local]));
    expect([plain.status, plain.headers.get('upgrade')]).toEqual([426, 'websocket']);
  });

  it('that is cut, or whose client says nothing more, holds nothing', async () => {
    const connection = await connectRaw(gateway.port);
    connection.write(requestText('GET /ws HTTP/1.1', handshake(local)).slice(0, 60));
    connection.drop();
    expect((await sendRaw(gateway.port, requestText('GET /healthz HTTP/1.1', [local]))).status).toBe(200);
  });
});

describe('another upgrade than that to WebSocket', () => {
  it('is not taken, and the request is served, with its body: clients of Java offer h2c with each', async () => {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'j', version: '1' } },
    });
    const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'];
    const head = [local, 'Content-Type: application/json', 'Accept: application/json, text/event-stream', ...h2c];
    const answer = await sendRaw(
      gateway.port,
      requestText('POST /mcp HTTP/1.1', [...head, `Content-Length: ${body.length}`], body),
    );
    expect(answer.status).toBe(200);
    expect(answer.json.result.protocolVersion).toBe('2025-11-25');
    const refused = await sendRaw(
      gateway.port,
      requestText(
        'POST /mcp HTTP/1.1',
        [...head, 'Origin: https://evil.example', `Content-Length: ${body.length}`],
        body,
      ),
    );
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'origin_not_allowed']);
  });

  it('on a connection with an answer under way ends that connection, and nothing else', async () => {
    const connection = await connectRaw(gateway.port);
    const get = requestText('GET /healthz HTTP/1.1', [local]);
    connection.write(get + requestText('GET /healthz HTTP/1.1', [local, 'Connection: Upgrade', 'Upgrade: h2c']) + get);
    expect((await connection.answer()).status).toBe(0); // no answer could follow the one to the upgrade
    const session = await initialize(gateway.url);
    expect((await session.request('ping')).status).toBe(200);
  });
});
