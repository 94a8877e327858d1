// Legacy servers without any SDK, over each transport, whose every message is the test's.
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';
import type { Message } from '../support/http-client.ts';

/** What a server says when it gets a message. One function for each session. */
export type Talk = (message: Message, send: (message: object) => void) => void;

/** A running server. */
export interface PlainServer {
  readonly url: string;
  /** Cuts all its streams, in order or with a reset. Returns their number. */
  cut(how: 'ended' | 'reset'): number;
  stop(): void;
}

/** Starts a server. Each session, or each connection where there are no sessions, has its own way to talk. */
export type StartPlain = (newTalk: () => Talk) => Promise<PlainServer>;

const serverInfo = { name: 'plain', version: '1' };

/** The answer of an ordinary server, whose tool `echo` returns its text; undefined for a notification. */
export function answerTo({ id, method, params }: Message): object | undefined {
  if (id === undefined || method === undefined) return undefined;
  const results: Record<string, () => object> = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }),
    ping: () => ({}),
    'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
    'tools/call': () => ({ content: [{ type: 'text', text: params.arguments.text }] }),
  };
  const result = results[method]?.();
  return { jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'Method not found' } }) };
}

/** An ordinary server. */
export const answering = (): Talk => (message, send) => {
  const answer = answerTo(message);
  if (answer !== undefined) send(answer);
};

const sse = { 'content-type': 'text/event-stream' };
const event = (type: string, data: string) => `event: ${type}\ndata: ${data}\n\n`;
const messageEvent = (message: object) => event('message', JSON.stringify(message));

/** A session of HTTP+SSE is its stream: a POST for another one gets 404. */
export const startSse: StartPlain = (newTalk) => {
  const talks = new Map<ServerResponse, Talk>();
  let opened = 0;
  return startHttp(async (incoming, outgoing, streams) => {
    if (incoming.method === 'GET') {
      const id = `${++opened}`;
      streams.set(id, outgoing.writeHead(200, sse));
      talks.set(outgoing, newTalk());
      outgoing.write(event('endpoint', `/messages?id=${id}`));
      return;
    }
    const stream = streams.get(new URL(incoming.url ?? '', 'http://localhost').searchParams.get('id') ?? '');
    const message = await bodyOf(incoming);
    outgoing.writeHead(stream === undefined ? 404 : 202).end();
    if (stream !== undefined) talks.get(stream)?.(message, (said) => stream.write(messageEvent(said)));
  });
};

/**
 * Streamable HTTP, with one session or without any. It answers a POST with JSON, or with a stream if it says something
 * before its answer. What it says on its own comes on the stream of the newest open POST. Its streams are those of GET.
 */
export const startStreamable =
  (sessionId?: string): StartPlain =>
  (newTalk) => {
    let talk = newTalk();
    const open: { readonly id: unknown; readonly outgoing: ServerResponse }[] = [];
    const send = (said: Message): void => {
      const isAnswer = said.method === undefined;
      const at = isAnswer ? open.findIndex(({ id }) => id === said.id) : open.length - 1;
      const { outgoing } = open[at] ?? {};
      if (outgoing === undefined) return;
      if (isAnswer) open.splice(at, 1);
      if (isAnswer && !outgoing.headersSent) {
        outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said));
        return;
      }
      if (!outgoing.headersSent) outgoing.writeHead(200, sse);
      outgoing.write(messageEvent(said));
      if (isAnswer) outgoing.end();
    };
    return startHttp(async (incoming, outgoing, streams) => {
      if (incoming.method === 'GET') {
        streams.set(`${streams.size}`, outgoing.writeHead(200, sse));
        outgoing.flushHeaders();
        return;
      }
      if (incoming.method !== 'POST') {
        outgoing.writeHead(405).end();
        return;
      }
      const message = await bodyOf(incoming);
      if (message.method === 'initialize') {
        talk = newTalk();
        if (sessionId !== undefined) outgoing.setHeader('mcp-session-id', sessionId);
      }
      if (message.method === undefined || message.id === undefined) outgoing.writeHead(202).end();
      else open.push({ id: message.id, outgoing });
      talk(message, send);
    });
  };

export const startWebSocket: StartPlain = (newTalk) => {
  const sockets = new WebSocketServer({ noServer: true });
  sockets.on('connection', (peer) => {
    const talk = newTalk();
    peer.on('message', (text) => talk(JSON.parse(String(text)), (said) => peer.send(JSON.stringify(said))));
  });
  const server = createHttpServer();
  server.on('upgrade', (...request) =>
    sockets.handleUpgrade(...request, (peer) => void sockets.emit('connection', peer)),
  );
  const stop = (): void => {
    for (const peer of sockets.clients) peer.terminate();
    server.close();
  };
  return listen(server, 'ws', stop, (how) => {
    const all = [...sockets.clients];
    for (const peer of all) how === 'ended' ? peer.close(1000) : peer.terminate();
    return all.length;
  });
};

/** Lines on a TCP connection, as on the pipes of a process. */
export const startTcp: StartPlain = (newTalk) => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    const talk = newTalk();
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    createInterface({ input: socket }).on('line', (line) =>
      talk(JSON.parse(line), (said) => socket.write(`${JSON.stringify(said)}\n`)),
    );
  });
  const stop = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return listen(server, 'tcp', stop, (how) => {
    const all = [...sockets];
    for (const socket of all) how === 'ended' ? socket.end() : socket.destroy();
    return all.length;
  });
};

type Streams = Map<string, ServerResponse>;

function startHttp(
  handle: (incoming: IncomingMessage, outgoing: ServerResponse, streams: Streams) => Promise<void>,
): Promise<PlainServer> {
  const streams: Streams = new Map();
  const server = createHttpServer((incoming, outgoing) => void handle(incoming, outgoing, streams));
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return listen(server, 'http', stop, (how) => {
    const all = [...streams.values()];
    for (const stream of all) how === 'ended' ? stream.end() : stream.destroy();
    streams.clear();
    return all.length;
  });
}

async function bodyOf(incoming: IncomingMessage): Promise<Message> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function listen(server: Server, scheme: string, stop: () => void, cut: PlainServer['cut']): Promise<PlainServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `${scheme}://127.0.0.1:${port}${scheme === 'tcp' ? '' : '/mcp'}`, cut, stop };
}
