import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { openStdio } from '../../src/core/backend/stdio/stdio-backend.ts';
import { openModernHttp } from '../../src/features/remote/modern-http/modern-http-backend.ts';
import { openSocket } from '../../src/features/remote/socket/socket-backend.ts';
import { openSse } from '../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openWebSocket } from '../../src/features/websocket/backend/websocket-backend.ts';
import { listenHttp, listening } from '../core/backend/local-servers.ts';
import { type Opened, openBackend } from '../core/backend/open-backend.ts';

const note = (data: string): string =>
  `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${data}}}`;
const first = note('"first"');
const large = note(`[${'0,'.repeat(1024 * 1024)}0]`);
const behind = note('"behind it"');
const answer = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}';
const texts = [first, large, behind, answer];
/** Messages as a failed test can show them. */
const shortened = (message: string): string => (message === large ? 'large' : message);

const asEvents = (outgoing: ServerResponse, before = ''): void =>
  void outgoing
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(before + texts.map((text) => `data: ${text}\n\n`).join(''));

const request = (method: string): string => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{}}`;

/** Opens a backend of a kind whose server writes all texts at once, and ends if that kind of server has an end. */
const kinds: Readonly<Record<string, () => Promise<Opened>>> = {
  async STDIO() {
    const program = `
      const note = (data) => '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":' + data + '}}\\n';
      const large = note('[' + '0,'.repeat(1024 * 1024) + '0]');
      process.stdout.write(note('"first"') + large + note('"behind it"') + ${JSON.stringify(answer)});`;
    const options = { command: process.execPath, args: ['-e', program], env: {} };
    return openBackend((events) => openStdio(options, events));
  },
  async TCP() {
    const port = await listening(createServer((socket) => void socket.end(`${texts.join('\n')}\n`)));
    return openBackend((events) => openSocket({ address: { host: '127.0.0.1', port } }, events));
  },
  async WebSocket() {
    const server = createHttpServer();
    new WebSocketServer({ server }).on('connection', (peer) => {
      for (const text of texts) peer.send(text);
      peer.close();
    });
    const url = new URL(`ws://127.0.0.1:${await listening(server)}/`);
    return openBackend((events) => openWebSocket({ url }, events));
  },
  async 'HTTP+SSE'() {
    const url = await listenHttp((outgoing) => asEvents(outgoing, 'event: endpoint\ndata: /x\n\n'));
    return openBackend((events) => openSse({ url }, events));
  },
  async 'Streamable HTTP'() {
    const url = await listenHttp((outgoing, method) =>
      method === 'POST' ? asEvents(outgoing) : void outgoing.writeHead(405).end(),
    );
    const opened = openBackend((events) => openStreamableHttp({ url }, events));
    opened.send(request('initialize'));
    return opened;
  },
  async 'Streamable HTTP of the modern era'() {
    const url = await listenHttp((outgoing) => asEvents(outgoing));
    const opened = openBackend((events) => openModernHttp({ url, version: '1' }, events));
    opened.send(request('tools/list'));
    return opened;
  },
};

/** Servers whose end is that of the backend. */
const ending = new Set(['STDIO', 'TCP', 'WebSocket', 'HTTP+SSE']);

describe.each(Object.keys(kinds))('[S-05] a large message of a server on %s', (kind) => {
  const open = kinds[kind] as () => Promise<Opened>;

  it('is told in order with those around it, and before the end', async () => {
    const opened = await open();
    const seen = [];
    for (const _ of texts) seen.push(shortened(await opened.messages.next()));
    expect(seen).toEqual(texts.map(shortened));
    if (ending.has(kind)) expect((await opened.end()).reason).toBe('exited');
  });

  it('is dropped with all behind it if the backend is closed while it waits for its turn', async () => {
    const opened = await open();
    expect(await opened.messages.next()).toBe(first);
    const closed = opened.backend.close();
    for (let turn = 0; turn < 500; turn += 1) await nextTurn(); // the large one would have been read
    await closed;
    await opened.end();
    expect(opened.messages.items).toEqual([first]);
  });
});
