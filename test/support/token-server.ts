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

/**
 * A server that requires a token in every request. Its only tool returns the token of its call; see `toldToken`.
 * HTTP+SSE at `/sse`, and Streamable HTTP at `/mcp`.
 */
export interface TokenServer {
  readonly urls: { readonly sse: string; readonly http: string };
  readonly seen: readonly Seen[];
  /** The tokens of requests of this kind, in order. */
  tokensOf(what: string): readonly (string | undefined)[];
  /** Cuts every stream and forgets every session, as a restart does. */
  restart(): void;
  close(): void;
}

const tokenOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined =>
  /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];

/**
 * Starts one. Whoever starts it closes it.
 * @param isValid decides about tokens; others are refused with 401
 */
export async function startTokenServer(isValid: (token: string) => boolean = () => true): Promise<TokenServer> {
  const streams = new Map<string, ServerResponse>();
  const sessions = new Set<unknown>();
  const seen: Seen[] = [];

  const openStream = (path: string, response: ServerResponse): void => {
    const own = randomUUID();
    streams.set(own, response);
    response.on('close', () => streams.delete(own));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (path === '/sse') response.write(`event: endpoint\ndata: /messages?s=${own}\n\n`);
  };

  const server = createServer(async (request, response) => {
    const sent = tokenOf(request);
    const token = sent !== undefined && isValid(sent) ? sent : undefined;
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const see = (what: string): void => void seen.push({ what, headers: request.headers });
    if (request.method !== 'POST') {
      see(request.method === 'GET' ? 'stream' : 'delete');
      if (token === undefined) response.writeHead(401).end();
      else if (request.method === 'GET') openStream(pathname, response);
      else response.writeHead(200).end();
      return;
    }
    const message = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { id?: unknown; method?: string };
    see(message.method ?? 'response');
    if (token === undefined) return void response.writeHead(401).end();
    const isHttp = pathname === '/mcp';
    const isKnown = message.method === 'initialize' || sessions.has(request.headers['mcp-session-id']);
    if (isHttp && !isKnown) return void response.writeHead(404).end();
    const answer = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: resultOf(message.method, token) });
    if (message.id === undefined || !isHttp) response.writeHead(202).end();
    if (message.id === undefined) return;
    if (!isHttp) return void streams.get(searchParams.get('s') ?? '')?.write(`event: message\ndata: ${answer}\n\n`);
    const id = message.method === 'initialize' ? randomUUID() : undefined;
    if (id !== undefined) sessions.add(id);
    response.writeHead(200, { 'content-type': 'application/json', ...(id && { 'mcp-session-id': id }) }).end(answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    urls: { sse: `${origin}/sse`, http: `${origin}/mcp` },
    seen,
    tokensOf: (what) => seen.filter((each) => each.what === what).map(tokenOf),
    restart() {
      sessions.clear();
      for (const response of streams.values()) response.destroy();
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The token in the tool's answer. It is hexadecimal, because the answer may be in an event log. */
export const toldToken = (text: string): string => Buffer.from(text, 'hex').toString();

function resultOf(method: string | undefined, token: string): object {
  const serverInfo = { name: 'tokens', version: '1' };
  if (method === 'initialize') return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
  if (method === 'tools/list') return { tools: [{ name: 'token', inputSchema: { type: 'object' } }] };
  if (method === 'tools/call') return { content: [{ type: 'text', text: Buffer.from(token).toString('hex') }] };
  return {};
}
