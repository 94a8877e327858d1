import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { onTestFinished, TestRunner } from 'vitest';
import { WebSocket } from 'ws';
import type { Message } from './http-client.ts';
import { createInbox, type Inbox, type Waiting, withDeadline } from './wait-for.ts';

export interface HandshakeOptions {
  readonly headers?: OutgoingHttpHeaders;
  /** The offered subprotocols. */
  readonly protocols?: readonly string[];
  /** False for a client that does not answer pings. */
  readonly autoPong?: boolean;
}

/** A message as text and parsed. */
export interface ReceivedText {
  readonly text: string;
  readonly message: Message;
}

/** One client on a WebSocket, without any SDK. */
export interface WebSocketClient {
  readonly peer: WebSocket;
  /** The received messages, in order. */
  readonly received: Inbox<ReceivedText>;
  /** Sends any message, or text. */
  send(body: unknown): void;
  /** The next message that matches. */
  next(matches?: (message: Message) => boolean, waiting?: Waiting): Promise<Message>;
  /** Sends a request and resolves with the response to it. Ids count up from 1 unless given. */
  request(method: string, params?: object, id?: string | number): Promise<Message>;
  callTool(name: string, args?: object, id?: string | number): Promise<Message>;
  notify(method: string, params?: object): void;
  /** Opens the session; resolves with the response. */
  initialize(version?: string, capabilities?: object): Promise<Message>;
  /** The close code and reason of the connection. */
  closed(waiting?: Waiting): Promise<{ readonly code: number; readonly reason: string }>;
}

/** `ws://…/ws` of a gateway, by its Streamable HTTP endpoint. */
export const webSocketUrlOf = (url: string): string => url.replace(/^http/, 'ws').replace(/\/mcp$/, '/ws');

/** Connects, and closes the connection with the test if it runs in one. */
export async function connectWebSocket(url: string, options: HandshakeOptions = {}): Promise<WebSocketClient> {
  const peer = begin(url, options);
  const received = createInbox<ReceivedText>();
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    peer.on('close', (code, reason) => {
      resolve({ code, reason: reason.toString() });
      received.end();
    });
  });
  peer.on('message', (data) => {
    const text = String(data);
    received.push({ text, message: JSON.parse(text) });
  });
  await withDeadline(
    new Promise((resolve, reject) => {
      peer.once('open', resolve).on('error', reject);
    }),
    { what: 'a WebSocket' },
  );
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(() => peer.terminate());
  let lastId = 0;
  const client: WebSocketClient = {
    peer,
    received,
    send: (body) => peer.send(typeof body === 'string' ? body : JSON.stringify(body)),
    next: async (matches = () => true, waiting = {}) =>
      (await received.next(({ message }) => matches(message), { what: 'a message', ...waiting })).message,
    request(method, params, id = ++lastId) {
      client.send({ jsonrpc: '2.0', id, method, ...(params && { params }) });
      return client.next((message) => message.id === id && message.method === undefined, { what: method });
    },
    callTool: (name, args = {}, id = ++lastId) =>
      client.request('tools/call', { name, arguments: args, _meta: { progressToken: id } }, id),
    notify: (method, params) => client.send({ jsonrpc: '2.0', method, ...(params && { params }) }),
    async initialize(version = '2025-11-25', capabilities = {}) {
      const clientInfo = { name: 'raw-websocket-client', version: '1' };
      const response = await client.request('initialize', { protocolVersion: version, capabilities, clientInfo }, 0);
      if (response.result !== undefined) client.notify('notifications/initialized');
      return response;
    },
    closed: (waiting = {}) => withDeadline(closed, { what: 'the end of the WebSocket', ...waiting }),
  };
  return client;
}

/** The answer to a handshake that is refused. */
export interface Refused {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly json: Message;
}

/** Offers a handshake and resolves with the refusal; rejects if the handshake is accepted. */
export function refusedHandshake(url: string, options: HandshakeOptions = {}): Promise<Refused> {
  const peer = begin(url, options);
  const refused = new Promise<Refused>((resolve, reject) => {
    peer.once('open', () => reject(new Error('The handshake was accepted')));
    peer.once('error', reject);
    peer.once('unexpected-response', async (_, response: IncomingMessage) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, json: JSON.parse(text) });
    });
  });
  return withDeadline(refused, { what: 'an answer to the handshake' }).finally(() => {
    peer.on('error', () => undefined).terminate();
  });
}

const begin = (url: string, { headers = {}, protocols = ['mcp'], autoPong = true }: HandshakeOptions): WebSocket =>
  new WebSocket(url, [...protocols], { headers: headers as Record<string, string>, autoPong });
