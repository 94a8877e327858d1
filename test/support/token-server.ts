import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request that reached the server. */
export interface Seen {
  /** `stream` for a GET, else the method of the message that was posted. */
  readonly what: string;
  readonly headers: IncomingMessage['headers'];
}

/** An HTTP+SSE server that serves nobody without a token, on any request, and whose only tool tells the token of its call; see `toldToken`. */
export interface TokenServer {
  readonly url: string;
  readonly seen: readonly Seen[];
  /** The tokens of requests of this kind, in order. */
  tokensOf(what: string): readonly (string | undefined)[];
  /** Cuts every stream, as a restart does. */
  cutStreams(): void;
  close(): void;
}

const tokenOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined =>
  /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];

/** Starts one. Whoever starts it closes it. */
export async function startTokenServer(): Promise<TokenServer> {
  const streams = new Map<string, ServerResponse>();
  const seen: Seen[] = [];

  const server = createServer(async (request, response) => {
    const token = tokenOf(request);
    const id = new URL(request.url ?? '', 'http://localhost').searchParams.get('s') ?? '';
    if (request.method === 'GET') {
      seen.push({ what: 'stream', headers: request.headers });
      if (token === undefined) return void response.writeHead(401).end();
      const own = randomUUID();
      streams.set(own, response);
      response.on('close', () => streams.delete(own));
      return void response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`event: endpoint\ndata: /messages?s=${own}\n\n`);
    }
    const message = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { id?: unknown; method?: string };
    seen.push({ what: message.method ?? 'response', headers: request.headers });
    if (token === undefined) return void response.writeHead(401).end();
    response.writeHead(202).end();
    if (message.id === undefined) return;
    const answer = { jsonrpc: '2.0', id: message.id, result: resultOf(message.method, token) };
    streams.get(id)?.write(`event: message\ndata: ${JSON.stringify(answer)}\n\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`,
    seen,
    tokensOf: (what) => seen.filter((each) => each.what === what).map(tokenOf),
    cutStreams() {
      for (const response of streams.values()) response.destroy();
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The token that the tool's answer tells: in hexadecimal, since the answer may stand in a log of events. */
export const toldToken = (text: string): string => Buffer.from(text, 'hex').toString();

function resultOf(method: string | undefined, token: string): object {
  const serverInfo = { name: 'tokens', version: '1' };
  if (method === 'initialize') return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
  if (method === 'tools/list') return { tools: [{ name: 'token', inputSchema: { type: 'object' } }] };
  if (method === 'tools/call') return { content: [{ type: 'text', text: Buffer.from(token).toString('hex') }] };
  return {};
}
