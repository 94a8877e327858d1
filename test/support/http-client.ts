import {
  type Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { canary, expectNoLeak, headerCanaries, noteIssued } from './canaries.ts';
import { createSseReader, type SseEvent } from './sse-reader.ts';
import { createInbox, type Inbox, type Waiting, withDeadline } from './wait-for.ts';

/** A parsed JSON-RPC message, which tests read freely. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape, the wrong ones too
export type Message = any;

/** The answer to one HTTP request. Only SSE and JSON are interpreted. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body, unchanged. */
  readonly text: string;
  /** The parsed body of a JSON answer, undefined for any other. */
  readonly json: Message;
  /** The events of an SSE answer in wire order; empty for any other. */
  readonly events: readonly SseEvent[];
  /** The messages in the answer, of both kinds: the JSON body (each of a batch), or the data of the events. */
  readonly messages: readonly Message[];
}

/** An HTTP exchange whose headers have arrived. Its body may still arrive. */
export interface Exchange {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * The events of an SSE answer as they arrive. The inbox ends with the body, with a reason if the connection broke.
   */
  readonly events: Inbox<SseEvent>;
  /** The comments of an SSE answer as they arrive. */
  readonly comments: Inbox<string>;
  /** Resolves with the next matching message of an SSE answer. */
  nextMessage(matches?: (message: Message) => boolean, waiting?: Waiting): Promise<Message>;
  /** Resolves with everything when the body has ended; rejects if the connection broke. */
  answer(waiting?: Waiting): Promise<Answer>;
  /** Cuts the connection at once, like a client that loses its network. */
  drop(): void;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** A string or bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown;
  readonly agent?: Agent;
}

const jsonAndSse = 'application/json, text/event-stream';

/** Sends one HTTP request and resolves when the headers of its answer have come. */
export function open(
  url: string,
  { method = 'POST', headers = {}, body, agent }: RequestOptions = {},
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    // Without an agent, each request has its own connection, which `drop` can cut without harm to others.
    const request = httpRequest(url, { method, headers: { ...headerCanaries, ...headers }, agent: agent ?? false });
    request.on('error', reject);
    request.on('response', (response) => resolve(readExchange(response, () => request.destroy())));
    if (body === undefined) request.end();
    else request.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
}

/** Posts one message, or a batch, or any text, and resolves when the whole answer has come. */
export async function post(
  url: string,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
  agent?: Agent,
): Promise<Answer> {
  const exchange = await open(url, {
    headers: { 'Content-Type': 'application/json', Accept: jsonAndSse, ...headers },
    body,
    ...(agent && { agent }),
  });
  return exchange.answer();
}

function readExchange(response: IncomingMessage, destroy: () => void): Exchange {
  const status = response.statusCode ?? 0;
  const { headers } = response;
  const type = headers['content-type'] ?? '';
  const events = createInbox<SseEvent>();
  const comments = createInbox<string>();
  const readSse = type.startsWith('text/event-stream')
    ? createSseReader({ onEvent: events.push, onComment: comments.push })
    : undefined;
  let text = '';
  let isDropped = false;
  noteIssued(headers['mcp-session-id']);

  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
    readSse?.(chunk);
  });
  const end = (reason?: Error) => {
    events.end(reason);
    comments.end(reason);
  };
  response.on('end', () => end());
  response.on('error', (cause) => end(isDropped ? new Error('Dropped by the test') : cause));
  response.on('close', () => end(new Error('The connection closed before the answer was complete')));

  return {
    status,
    headers,
    events,
    comments,
    nextMessage: async (matches = () => true, waiting = {}) => {
      const event = await events.next(({ data }) => isMessage(data) && matches(JSON.parse(data)), {
        what: 'a message',
        ...waiting,
      });
      return JSON.parse(event.data ?? '');
    },
    answer: async (waiting = {}) => {
      await withDeadline(events.ended, { deadlineMs: 60_000, what: 'the end of the answer', ...waiting });
      // A server may repeat what its client said to it, but must not know data that is only for the gateway.
      if (status >= 400) expectNoLeak(`the body of a ${status}`, text, { allowsContent: true });
      const json = type.startsWith('application/json') && text !== '' ? JSON.parse(text) : undefined;
      const messages = json === undefined ? messagesOf(events.items) : [json].flat();
      return { status, headers, text, json, events: events.items, messages };
    },
    drop: () => {
      isDropped = true;
      destroy();
    },
  };
}

/** The messages in events: a priming event has none. */
export function messagesOf(events: readonly SseEvent[]): Message[] {
  return events
    .map(({ data }) => data)
    .filter(isMessage)
    .map((data) => JSON.parse(data));
}

function isMessage(data: string | undefined): data is string {
  return data !== undefined && data !== '';
}

export interface SessionOptions {
  readonly version?: string;
  readonly capabilities?: object;
  /** By default, a name of its own and a version that must not be in a log. */
  readonly clientInfo?: object;
  /** Added to each request. */
  readonly headers?: OutgoingHttpHeaders;
  readonly agent?: Agent;
}

/** One client's session, over plain HTTP and without any SDK. */
export interface Session {
  /** The value of `Mcp-Session-Id`. */
  readonly id: string;
  readonly version: string;
  /** The result of `initialize`. */
  readonly initialized: Message;
  /** Sends any message, or text, and resolves with the headers of the answer. */
  send(body: unknown, headers?: OutgoingHttpHeaders): Promise<Exchange>;
  /** Sends a request and resolves with the whole answer. Ids count up from 1 unless given. */
  request(
    method: string,
    params?: object,
    options?: { id?: string | number; headers?: OutgoingHttpHeaders },
  ): Promise<Answer>;
  /** Calls a tool and resolves with its result; throws on an error response. */
  callTool(name: string, args?: object, meta?: object): Promise<Message>;
  notify(method: string, params?: object): Promise<Answer>;
  /** Answers a server's request. */
  respond(id: string | number, result: object): Promise<Answer>;
  respondError(id: string | number, error: { code: number; message: string }): Promise<Answer>;
  /** Opens the GET stream, or resumes the stream of `lastEventId`. */
  getStream(lastEventId?: string): Promise<Exchange>;
  delete(): Promise<Answer>;
  /** The same session at another address with the same id counter: another instance, or a proxy. */
  at(url: string): Session;
}

/** Initializes a session at `url` (2025-11-25 basic/lifecycle): `initialize`, then `notifications/initialized`. */
export async function initialize(
  url: string,
  {
    version = '2025-11-25',
    capabilities = {},
    clientInfo = { name: 'raw-test-client', version: canary('content') },
    headers = {},
    agent,
  }: SessionOptions = {},
): Promise<Session> {
  const params = { protocolVersion: version, capabilities, clientInfo };
  const answer = await post(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, headers, agent);
  const initialized = answer.messages.find(({ id }) => id === 0)?.result;
  const id = answer.headers['mcp-session-id'];
  if (initialized === undefined || typeof id !== 'string') {
    throw new Error(`initialize failed with ${answer.status}: ${answer.text}`);
  }

  const sessionHeaders = { ...headers, 'Mcp-Session-Id': id, 'MCP-Protocol-Version': initialized.protocolVersion };
  const ids = { last: 0 };
  const session = sessionAt(url, { id, initialized, headers: sessionHeaders, agent, ids });
  const accepted = await session.notify('notifications/initialized');
  if (accepted.status !== 202) throw new Error(`notifications/initialized got ${accepted.status}: ${accepted.text}`);
  return session;
}

interface SessionParts extends Pick<Session, 'id' | 'initialized'> {
  readonly headers: OutgoingHttpHeaders;
  readonly agent: Agent | undefined;
  readonly ids: { last: number };
}

function sessionAt(url: string, parts: SessionParts): Session {
  const { id, initialized, headers: sessionHeaders, agent, ids } = parts;
  const withAgent = agent && { agent };
  const send = (body: unknown, more: OutgoingHttpHeaders = {}) =>
    open(url, {
      headers: { 'Content-Type': 'application/json', Accept: jsonAndSse, ...sessionHeaders, ...more },
      body,
      ...withAgent,
    });
  const sendWhole = async (body: object, more?: OutgoingHttpHeaders) => (await send(body, more)).answer();

  const session: Session = {
    id,
    version: initialized.protocolVersion,
    initialized,
    send,
    request: (method, params, { id = ++ids.last, headers } = {}) =>
      sendWhole({ jsonrpc: '2.0', id, method, ...(params && { params }) }, headers),
    callTool: async (name, args = {}, _meta) => {
      const { messages, text } = await session.request('tools/call', {
        name,
        arguments: args,
        ...(_meta && { _meta }),
      });
      const response = messages.find((message) => message.result !== undefined || message.error !== undefined);
      if (response?.result === undefined) throw new Error(`${name} answered ${text}`);
      return response.result;
    },
    notify: (method, params) => sendWhole({ jsonrpc: '2.0', method, ...(params && { params }) }),
    respond: (id, result) => sendWhole({ jsonrpc: '2.0', id, result }),
    respondError: (id, error) => sendWhole({ jsonrpc: '2.0', id, error }),
    getStream: (lastEventId) =>
      open(url, {
        method: 'GET',
        headers: {
          Accept: 'text/event-stream',
          ...sessionHeaders,
          ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
        },
        ...withAgent,
      }),
    delete: async () => (await open(url, { method: 'DELETE', headers: sessionHeaders, ...withAgent })).answer(),
    at: (other) => sessionAt(other, parts),
  };
  return session;
}
