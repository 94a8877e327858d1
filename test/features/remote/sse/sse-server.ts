import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import { openSse, type SseOptions } from '../../../../src/features/remote/sse/sse-backend.ts';
import { type Opened, openBackend } from '../../../core/backend/open-backend.ts';
import { createInbox, type Inbox } from '../../../support/wait-for.ts';

/** One POST as it reached a server. */
export interface Received {
  readonly text: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** What a test's server does; by default it is an ordinary one that answers nothing but 202. */
export interface Manners {
  onGet?(response: ServerResponse, request: IncomingMessage): void;
  onPost?(received: Received): void;
}

/** A tiny HTTP+SSE server of which every byte is the test's. */
export interface SseServer {
  readonly origin: string;
  readonly url: URL;
  /** The streams opened, and the messages posted, in order. */
  readonly streams: Inbox<ServerResponse>;
  readonly posts: Inbox<Received>;
  /** The method and path of every request, whatever it was. */
  readonly requests: readonly string[];
  readonly connections: () => number;
}

/** The head of a stream. */
export const beginStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

export const event = (type: string, data: string): string => `event: ${type}\ndata: ${data}\n\n`;

/** Where our servers take POSTs; the secret is the server's session id. */
export const endpointPath = '/messages?sessionId=upstream-secret';

/** A stream with its endpoint. */
export const greet = (response: ServerResponse): void => {
  beginStream(response).write(event('endpoint', endpointPath));
};

export async function startSseServer({ onGet = greet, onPost = accept }: Manners = {}): Promise<SseServer> {
  const streams = createInbox<ServerResponse>();
  const posts = createInbox<Received>();
  const requests: string[] = [];
  const ports = new Set<number | undefined>();
  const server = createServer(async (request, response) => {
    ports.add(request.socket.remotePort);
    requests.push(`${request.method} ${request.url}`);
    response.on('error', () => undefined);
    if (request.method === 'GET') {
      onGet(response, request);
      streams.push(response);
      return;
    }
    request.setEncoding('utf8');
    let text = '';
    for await (const chunk of request) text += chunk;
    const received = { text, request, response };
    posts.push(received);
    onPost(received);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, url: new URL('/sse', origin), streams, posts, requests, connections: () => ports.size };
}

export const accept = ({ response }: Pick<Received, 'response'>): void => void response.writeHead(202).end('Accepted');

export const open = (
  url: URL,
  options: Partial<SseOptions> = {},
  onMessages?: (messages: readonly Message[]) => void,
): Opened => openBackend((events) => openSse({ url, ...options }, events), onMessages);

/** A backend that has its endpoint and whose first POST was taken. */
export async function openLive(manners: Manners = {}, options: Partial<SseOptions> = {}) {
  const server = await startSseServer(manners);
  const failures: string[] = [];
  const onPostFailed = (detail: string, dropped: number) => void failures.push(`${detail} ${dropped}`);
  const opened = open(server.url, { onPostFailed, ...options });
  const stream = await server.streams.next();
  return { ...opened, server, stream, failures };
}
