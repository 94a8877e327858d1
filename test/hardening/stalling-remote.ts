import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { text as textOf } from 'node:stream/consumers';
import { WebSocketServer } from 'ws';

/** How a remote server speaks. */
export type RemoteKind =
  | 'JSON of Streamable HTTP'
  | 'events of Streamable HTTP'
  | 'events of HTTP+SSE'
  | 'JSON of the modern era'
  | 'events of the modern era'
  | 'WebSocket'
  | 'TCP';

/** A remote server that answers each call of a tool with a large text that is made to cost its reader much. */
export interface StallingRemote extends AsyncDisposable {
  readonly url: string;
}

interface Request {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
}

const results: Readonly<Record<string, (request: Request) => string>> = {
  initialize: ({ params }) =>
    `{"protocolVersion":"${params?.protocolVersion}","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
  'server/discover': () =>
    '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}',
};

/** The parts of an answer beside its values, and of an event beside the answer, have fewer bytes. */
const spareBytes = 1_000;

/** The answer to a request: one message, of many bytes if it is a call of a tool; undefined for a notification. */
function answerTo(request: Request, bytes: number): string | undefined {
  if (request.id === undefined) return undefined;
  const large = (): string =>
    `{"resultType":"complete","content":[],"structuredContent":{"a":[${'0,'.repeat((bytes - spareBytes) / 2)}0]}}`;
  const result = request.method === 'tools/call' ? large() : (results[request.method ?? '']?.(request) ?? '{}');
  return `{"jsonrpc":"2.0","id":${JSON.stringify(request.id)},"result":${result}}`;
}

const eventOf = (message: string): string => `event: message\ndata: ${message}\n\n`;

/** @param bytes of an answer to a call of a tool */
export async function startStallingRemote(kind: RemoteKind, bytes: number): Promise<StallingRemote> {
  if (kind === 'TCP') return startLines(bytes);
  const server = createHttpServer((incoming, outgoing) => void answerHttp(incoming, outgoing));
  /** The streams of HTTP+SSE, by the path of their endpoint. */
  const streams = new Map<string, ServerResponse>();

  const answerHttp = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const isSse = kind === 'events of HTTP+SSE';
    if (incoming.method === 'GET' && isSse) {
      const endpoint = `/messages/${streams.size}`;
      streams.set(endpoint, outgoing);
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    const body = await textOf(incoming);
    const stream = streams.get(incoming.url ?? '');
    if (incoming.method !== 'POST' || (isSse && stream === undefined)) return void outgoing.writeHead(405).end();
    const request = JSON.parse(body) as Request;
    const answer = answerTo(request, bytes);
    if (answer === undefined || stream !== undefined) outgoing.writeHead(202).end();
    if (answer === undefined) return;
    if (stream !== undefined) stream.write(eventOf(answer));
    else if (kind.startsWith('events'))
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end(eventOf(answer));
    else outgoing.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  };

  if (kind === 'WebSocket') {
    new WebSocketServer({ server }).on('connection', (peer) => {
      peer.on('message', (data) => {
        const answer = answerTo(JSON.parse(data.toString()) as Request, bytes);
        if (answer !== undefined) peer.send(answer);
      });
    });
  }
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${kind === 'WebSocket' ? 'ws' : 'http'}://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function startLines(bytes: number): Promise<StallingRemote> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // the gateway is stopped first
    createInterface({ input: socket }).on('line', (line) => {
      const answer = answerTo(JSON.parse(line) as Request, bytes);
      if (answer !== undefined) socket.write(`${answer}\n`);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}
