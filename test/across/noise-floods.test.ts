import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import type { BackendEvents, OpenBackend } from '../../src/core/backend/backend.ts';
import { openStdio } from '../../src/core/backend/stdio/stdio-backend.ts';
import { openModernHttp } from '../../src/features/remote/modern-http/modern-http-backend.ts';
import { openSocket } from '../../src/features/remote/socket/socket-backend.ts';
import { openSse } from '../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openWebSocket } from '../../src/features/websocket/backend/websocket-backend.ts';
import { listenHttp, listening } from '../core/backend/local-servers.ts';
import { openBackend } from '../core/backend/open-backend.ts';

/** A flood of texts of one letter, which are no messages. Each reader of texts is flooded (P8). */
const count = 50_000;
const answer = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}';
const lines = `${'x\n'.repeat(count)}${answer}\n`;
const events = `${'data: x\n\n'.repeat(count)}data: ${answer}\n\n`;

const writeEvents = (outgoing: ServerResponse, before = ''): void =>
  void outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end(before + events);

/** Opens a backend whose server floods, and the request that makes it do so. */
const kinds: Readonly<Record<string, () => Promise<readonly [OpenBackend, method?: string]>>> = {
  async STDIO() {
    const program = `process.stdout.write('x\\n'.repeat(${count}) + ${JSON.stringify(`${answer}\n`)})`;
    const options = { command: process.execPath, args: ['-e', program], env: {} };
    return [(to: BackendEvents) => openStdio(options, to)];
  },
  async TCP() {
    const port = await listening(createServer((socket) => void socket.end(lines)));
    return [(to: BackendEvents) => openSocket({ address: { host: '127.0.0.1', port } }, to)];
  },
  async WebSocket() {
    const server = createHttpServer();
    new WebSocketServer({ server }).on('connection', (peer) => {
      for (let n = 0; n < count; n += 1) peer.send('x');
      peer.send(answer);
      peer.close();
    });
    const url = new URL(`ws://127.0.0.1:${await listening(server)}/`);
    return [(to: BackendEvents) => openWebSocket({ url }, to)];
  },
  async 'HTTP+SSE'() {
    const url = await listenHttp((outgoing) => writeEvents(outgoing, 'event: endpoint\ndata: /x\n\n'));
    return [(to: BackendEvents) => openSse({ url }, to)];
  },
  async 'Streamable HTTP'() {
    const url = await listenHttp((outgoing, method) =>
      method === 'POST' ? writeEvents(outgoing) : void outgoing.writeHead(405).end(),
    );
    return [(to: BackendEvents) => openStreamableHttp({ url }, to), 'initialize'];
  },
  async 'Streamable HTTP of the modern era'() {
    const url = await listenHttp((outgoing) => writeEvents(outgoing));
    return [(to: BackendEvents) => openModernHttp({ url, version: '1' }, to), 'tools/list'];
  },
};

it.each(Object.entries(kinds))(
  '[G-02] [P8] texts that are no messages cost a few reports and a number, and what is behind them is read: %s',
  async (_, start) => {
    const [open, method] = await start();
    let reports = 0;
    let texts = 0;
    const opened = openBackend((to) =>
      open({
        onMessages: (...given) => to.onMessages(...given),
        onUnanswered: (...given) => to.onUnanswered(...given),
        onEnd: (end) => to.onEnd(end),
        onNoise(_, more = 0) {
          reports += 1;
          texts += 1 + more;
        },
      }),
    );
    if (method !== undefined) opened.send({ jsonrpc: '2.0', id: 1, method, params: {} });
    expect(await opened.messages.next()).toBe(answer);
    expect(texts).toBe(count);
    expect(reports).toBeLessThan(count / 4);
  },
);
