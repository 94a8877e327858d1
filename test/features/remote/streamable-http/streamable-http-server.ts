import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { UrlServerOptions } from '../../../../src/features/remote/http-client/server-connection.ts';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { type Opened, openBackend } from '../../../core/backend/open-backend.ts';
import { createInbox, type Inbox, waitFor } from '../../../support/wait-for.ts';

/** One request as it reached a server. */
export interface Received {
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly message: any;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

type Handler = (received: Received) => void;

/** What a test's server does; by default it has a session, answers all as JSON and offers no GET stream. */
export interface Manners {
  readonly onInitialize?: Handler;
  readonly onPost?: Handler;
  readonly onGet?: Handler;
  readonly onDelete?: Handler;
}

/** A tiny Streamable HTTP server of which every byte is the test's. */
export interface HttpServer {
  readonly url: URL;
  readonly posts: Inbox<Received>;
  readonly gets: Inbox<Received>;
  /** The method and path of every request, whatever it was. */
  readonly requests: readonly string[];
  /** Nobody listens from now on; connections are cut. */
  stop(): Promise<void>;
  /** Listens again. */
  start(): Promise<void>;
}

export const sessionId = 'upstream-secret';
export const welcome = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } };

export const json = (response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void =>
  void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

export const answerTo = (message: { readonly id: unknown }, result: unknown = {}) => ({
  jsonrpc: '2.0',
  id: message.id,
  result,
});

/** The head of a stream. */
export const beginStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** A message event. */
export const event = (value: unknown, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`;

export const greet: Handler = ({ message, response }) =>
  json(response, answerTo(message, welcome), { 'mcp-session-id': sessionId });

const answer: Handler = ({ message, response }) =>
  message.id === undefined || message.method === undefined
    ? void response.writeHead(202).end()
    : json(response, answerTo(message));

const refuse: Handler = ({ response }) => void response.writeHead(405).end();

export async function startHttpServer(manners: Manners = {}): Promise<HttpServer> {
  const { onInitialize = greet, onPost = answer, onGet = refuse, onDelete = refuse } = manners;
  const posts = createInbox<Received>();
  const gets = createInbox<Received>();
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.on('error', () => undefined);
    request.setEncoding('utf8');
    let text = '';
    for await (const chunk of request) text += chunk;
    const message = text === '' ? undefined : JSON.parse(text);
    const received = { text, message, request, response };
    if (request.method === 'POST') {
      posts.push(received);
      (message?.method === 'initialize' ? onInitialize : onPost)(received);
    } else if (request.method === 'GET') {
      gets.push(received);
      onGet(received);
    } else onDelete(received);
  });
  const start = async (port = 0): Promise<number> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await start();
  const stop = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(`http://127.0.0.1:${port}/mcp?key=url-secret`);
  return { url, posts, gets, requests, stop, start: async () => void (await start(port)) };
}

export const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: {} };
export const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
export const note = { jsonrpc: '2.0', method: 'notifications/x' };
export const request = (id: number | string, method = 'tools/call') => ({ jsonrpc: '2.0', id, method, params: {} });
export const cancel = (requestId: number | string) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});

export interface Live extends Opened {
  readonly server: HttpServer;
  /** Which requests each message came beside. */
  readonly origins: readonly (readonly (string | number)[] | undefined)[];
  readonly failures: readonly string[];
}

/** A backend whose session has begun. Its messages start after the answer to `initialize`. */
export async function openLive(manners: Manners = {}, options: Partial<UrlServerOptions> = {}): Promise<Live> {
  const server = await startHttpServer(manners);
  const failures: string[] = [];
  const origins: (readonly (string | number)[] | undefined)[] = [];
  const onPostFailed = (detail: string, dropped: number) => void failures.push(`${detail} ${dropped}`);
  const opened = openBackend(
    (events) => openStreamableHttp({ url: server.url, onPostFailed, ...options }, events),
    (messages, of) => void origins.push(...messages.map(() => of)),
  );
  opened.send(initialize);
  await opened.messages.next();
  opened.send(initialized);
  await waitFor(() => server.posts.items.length === 2, { what: 'the session to begin' });
  await server.posts.next();
  await server.posts.next();
  return { ...opened, server, origins, failures };
}
