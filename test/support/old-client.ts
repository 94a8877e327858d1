import type { OutgoingHttpHeaders } from 'node:http';
import { noteIssued } from './canaries.ts';
import { type Answer, type Message, post } from './http-client.ts';
import { type Listening, listen } from './resuming-client.ts';
import type { SseEvent } from './sse-reader.ts';
import { createInbox, type Inbox, type Waiting } from './wait-for.ts';

/** A client of HTTP+SSE (2024-11-05) without any SDK, which can also reconnect as an EventSource does. */
export interface OldClient {
  /** The endpoint that its stream has named: a path, and the token. */
  readonly endpoint: string;
  readonly token: string;
  /** The messages of all its connections. */
  readonly heard: Inbox<Message>;
  /** The texts of these messages. */
  readonly texts: readonly string[];
  /** The events of all of its connections, endpoints too. */
  readonly events: readonly SseEvent[];
  /** Its newest connection. */
  readonly stream: Listening;
  readonly lastEventId: string | undefined;
  /** Opens the stream again at this instance, after the last received event unless another one is given. */
  connect(baseUrl?: string, after?: string): Promise<Listening>;
  /** POSTs to an instance. */
  post(body: unknown, baseUrl?: string, headers?: OutgoingHttpHeaders): Promise<Answer>;
  /** POSTs a request and resolves with the response on the stream. The POST must be accepted. */
  request(method: string, params?: object, how?: { id?: string | number; baseUrl?: string }): Promise<Message>;
  /** The response to a request that was sent. */
  response(id: string | number, waiting?: Waiting): Promise<Message>;
  /** Cuts the connection. */
  drop(): void;
}

export interface OldClientOptions {
  readonly version?: string;
  /** The prefix of the endpoint paths: the server's name with a slash, or nothing. */
  readonly prefix?: string;
  /** The base URL for `initialize`, if it is not that of the stream. */
  readonly initializeAt?: string;
  /** Added to each request. */
  readonly headers?: OutgoingHttpHeaders;
}

/** Opens only the stream. The caller sends `initialize`. */
export async function openOldStream(
  baseUrl: string,
  { prefix = '', headers: own = {} }: Pick<OldClientOptions, 'prefix' | 'headers'> = {},
): Promise<OldClient> {
  const heard = createInbox<Message>();
  const texts: string[] = [];
  const events: SseEvent[] = [];
  let lastEventId: string | undefined;
  let endpoint = '';
  let stream: Listening | undefined;
  let asked = 0;
  const onEvent = (event: SseEvent): void => {
    events.push(event);
    if (event.id !== undefined) lastEventId = event.id;
    if (event.event === 'endpoint') {
      const { pathname, search, searchParams } = new URL(event.data ?? '', `${baseUrl}${prefix}/sse`);
      endpoint = pathname + search;
      noteIssued(searchParams.get('token'));
    }
    if (event.event !== 'message') return;
    texts.push(event.data ?? '');
    heard.push(JSON.parse(event.data ?? ''));
  };
  const client: OldClient = {
    get endpoint() {
      return endpoint;
    },
    get token() {
      return new URL(endpoint, baseUrl).searchParams.get('token') ?? '';
    },
    get stream() {
      if (stream === undefined) throw new Error('there is no connection');
      return stream;
    },
    get lastEventId() {
      return lastEventId;
    },
    heard,
    texts,
    events,
    async connect(at = baseUrl, after = lastEventId) {
      stream = listen(`${at}${prefix}/sse`, { headers: own, after, onEvent });
      const { status } = await stream.opened;
      if (status !== 0 && status !== 200) throw new Error(`the stream got ${status}: ${(await stream.ended).text}`);
      await stream.events.next(({ event }) => event === 'endpoint', { what: 'the endpoint' });
      return stream;
    },
    post: (body, at = baseUrl, headers = {}) => post(`${at}${endpoint}`, body, { Accept: '*/*', ...own, ...headers }),
    async request(method, params, { id = ++asked, baseUrl: at } = {}) {
      const answer = await client.post({ jsonrpc: '2.0', id, method, ...(params && { params }) }, at);
      if (answer.status !== 202 || answer.text !== '') throw new Error(`${method} got ${answer.status} ${answer.text}`);
      return client.response(id);
    },
    response: (id, waiting = {}) =>
      heard.next((message) => message.id === id && message.method === undefined, {
        what: `the response to ${id}`,
        deadlineMs: 30_000,
        ...waiting,
      }),
    drop: () => client.stream.drop(),
  };
  await client.connect();
  return client;
}

/** An `initialize` request. */
export const initializeRequest = (version = '2024-11-05') => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'old', version: '1' } },
});

/** Opens a session. */
export async function connectOld(baseUrl: string, options: OldClientOptions = {}): Promise<OldClient> {
  const { version, initializeAt } = options;
  const client = await openOldStream(baseUrl, options);
  const answer = await client.post(initializeRequest(version), initializeAt);
  if (answer.status !== 202) throw new Error(`initialize got ${answer.status} ${answer.text}`);
  const broken = client.stream.ended.then(() => Promise.reject(new Error('Ended before the response to initialize')));
  await Promise.race([client.response(0), broken]);
  await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return client;
}
