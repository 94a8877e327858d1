import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import type { OpenBackend } from '../../src/core/backend/backend.ts';
import { openStdio } from '../../src/core/backend/stdio/stdio-backend.ts';
import { LineSplitter } from '../../src/core/protocol/wire/lines.ts';
import { openModernHttp } from '../../src/features/remote/modern-http/modern-http-backend.ts';
import { openSocket } from '../../src/features/remote/socket/socket-backend.ts';
import { openSse } from '../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openWebSocket } from '../../src/features/websocket/backend/websocket-backend.ts';
import { listening } from '../core/backend/local-servers.ts';

/** What a server writes when it is called, whatever it is. */
export interface Written {
  readonly texts: readonly Buffer[];
  /** The server ends right after it, where its kind has an end. */
  readonly isLast?: boolean;
}

const isCall = (text: Buffer): boolean => JSON.parse(text.toString()).method === 'tools/call';

/** Each text in its frame. */
const framed = (texts: readonly Buffer[], frame: (text: Buffer) => Buffer): Buffer => Buffer.concat(texts.map(frame));
const asLine = (text: Buffer): Buffer => Buffer.concat([text, Buffer.from('\n')]);
const asEvent = (text: Buffer): Buffer => {
  // A mark is before the line of an event, as in a stream of lines.
  const mark = text[0] === 0xef ? text.subarray(0, 3) : Buffer.alloc(0);
  return Buffer.concat([mark, Buffer.from('data: '), text.subarray(mark.length), Buffer.from('\n\n')]);
};

/** A server that answers each call by HTTP. */
async function serveHttp(answerCall: (outgoing: ServerResponse) => void, onGet = refuse): Promise<URL> {
  const server = createHttpServer((incoming, outgoing) => {
    if (incoming.method !== 'POST') return onGet(incoming, outgoing);
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => void chunks.push(chunk));
    incoming.on('end', () => {
      if (isCall(Buffer.concat(chunks))) answerCall(outgoing);
      else outgoing.writeHead(202).end();
    });
  });
  const port = await listening(server);
  onTestFinished(() => server.closeAllConnections());
  return new URL(`http://127.0.0.1:${port}/`);
}

const refuse = (_: IncomingMessage, outgoing: ServerResponse): void => void outgoing.writeHead(405).end();
const sendJson =
  ({ texts }: Written) =>
  (outgoing: ServerResponse) =>
    void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(texts[0]);
const sendEvents =
  ({ texts }: Written) =>
  (outgoing: ServerResponse) =>
    void outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end(framed(texts, asEvent));

/** Opens a backend whose server writes this for each call. */
type Opening = (written: Written) => Promise<OpenBackend>;

/** Kinds of servers that can write several texts. Their connection is that of the session. */
export const lastingServers: Readonly<Record<string, Opening>> = {
  async STDIO({ texts, isLast = false }) {
    const program = `
      let pending = '';
      process.stdin.on('data', (chunk) => {
        pending += chunk;
        const lines = pending.split('\\n');
        pending = lines.pop();
        for (const line of lines) if (JSON.parse(line).method === 'tools/call')
          process.stdout.write(require('node:fs').readFileSync(process.argv[1]), () => { if (${isLast}) process.exit(); });
      }).on('end', () => process.exit());`;
    const folder = mkdtempSync(join(tmpdir(), 'writing-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(`${folder}/texts`, framed(texts, asLine));
    return (events) =>
      openStdio({ command: process.execPath, args: ['-e', program, `${folder}/texts`], env: {} }, events);
  },
  async TCP({ texts, isLast = false }) {
    const server = createServer((socket) => {
      const splitter = new LineSplitter({ maxLineBytes: 1_000_000 });
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        for (const line of splitter.push(chunk)) {
          if (!isCall(line)) continue;
          socket.write(framed(texts, asLine));
          if (isLast) socket.end();
        }
      });
    });
    const port = await listening(server);
    return (events) => openSocket({ address: { host: '127.0.0.1', port } }, events);
  },
  async WebSocket({ texts, isLast = false }) {
    const server = createHttpServer();
    new WebSocketServer({ server }).on('connection', (peer) =>
      peer.on('message', () => {
        for (const text of texts) peer.send(text, { binary: false });
        if (isLast) peer.close();
      }),
    );
    const url = new URL(`ws://127.0.0.1:${await listening(server)}/`);
    return (events) => openWebSocket({ url }, events);
  },
  async 'HTTP+SSE'({ texts, isLast = false }) {
    let stream: ServerResponse | undefined;
    const url = await serveHttp(
      (outgoing) => {
        outgoing.writeHead(202).end();
        stream?.write(framed(texts, asEvent));
        if (isLast) stream?.end();
      },
      (_, outgoing) => {
        stream = outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
        stream.write('event: endpoint\ndata: /x\n\n');
      },
    );
    return (events) => openSse({ url }, events);
  },
};

/** The same, and kinds whose answer to a POST has the texts. */
export const streamingServers: Readonly<Record<string, Opening>> = {
  ...lastingServers,
  async 'Streamable HTTP, events'(written) {
    const url = await serveHttp(sendEvents(written));
    return (events) => openStreamableHttp({ url }, events);
  },
  async '2026-07-28 over HTTP, events'(written) {
    const url = await serveHttp(sendEvents(written));
    return (events) => openModernHttp({ url, version: '1' }, events);
  },
};

/** All kinds of servers; some of them write the first text only. */
export const writingServers: Readonly<Record<string, Opening>> = {
  ...streamingServers,
  async 'Streamable HTTP, JSON'(written) {
    const url = await serveHttp(sendJson(written));
    return (events) => openStreamableHttp({ url }, events);
  },
  async '2026-07-28 over HTTP, JSON'(written) {
    const url = await serveHttp(sendJson(written));
    return (events) => openModernHttp({ url, version: '1' }, events);
  },
};
