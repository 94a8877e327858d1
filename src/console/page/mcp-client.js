import { ask } from './api.js';
import { readEvents } from './event-stream.js';

const revision = '2025-11-25';
const jsonAndEvents = 'application/json, text/event-stream';

/** Before the server has said how long to wait before a reconnect. */
const defaultRetryMs = 2_000;

/** A stream that cannot be resumed is given up after so many tries. */
const maxResumes = 5;

const isOver = 'The session has ended. Press Connect to start another one.';

/**
 * A client of one server, for a person who tries it: Streamable HTTP with a session (2025-11-25), by way of the admin port,
 * which passes each request on to the gateway's endpoint as if it had come there. Streams that break are resumed by
 * `Last-Event-ID`.
 */
export class McpClient {
  #path;
  #token;
  #told;
  #onAsked;
  #sessionId;
  #version;
  #nextId = 1;
  /** Of the streams that can be cut. */
  #abort = new AbortController();
  #closing = new AbortController();
  #open = 0;

  /**
   * @param {{ path: string, token: string, told(entry: object): void, onAsked(request: object): Promise<object> }} options
   *   `told` hears everything as it passes; `onAsked` answers what the server asks, with a result
   */
  constructor({ path, token, told, onAsked }) {
    this.#path = path;
    this.#token = token;
    this.#told = told;
    this.#onAsked = onAsked;
  }

  /** True while the stream of an answer is open, which could be cut. */
  get hasStream() {
    return this.#open > 0;
  }

  /** Opens the session. */
  async open() {
    const result = await this.request('initialize', {
      protocolVersion: revision,
      capabilities: { elicitation: { form: {} } },
      clientInfo: { name: 'mcp-gangway-playground', version: '1' },
    });
    this.#version = result.protocolVersion;
    await this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    void this.#listen();
    return result;
  }

  /** Ends the session. */
  async close() {
    this.#closing.abort();
    this.#abort.abort();
    if (this.#sessionId === undefined) return;
    await this.#fetch('DELETE', { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
  }

  /** All items of a list, over its pages. */
  async list(method, member) {
    const items = [];
    let cursor;
    do {
      const page = await this.request(method, cursor === undefined ? {} : { cursor });
      items.push(...(page[member] ?? []));
      cursor = page.nextCursor;
    } while (cursor !== undefined && items.length < 10_000);
    return items;
  }

  /** Resolves with the result of a request; rejects with the server's error, or with why there is none. */
  async request(method, params) {
    const id = this.#nextId++;
    const response = await this.#send({ jsonrpc: '2.0', id, method, params }, id);
    if (response === undefined) throw new Error('The stream ended without an answer and could not be resumed.');
    if (response.error !== undefined)
      throw Object.assign(new Error(response.error.message), { code: response.error.code });
    return response.result;
  }

  /** Breaks the connection of the open stream, as a lost network would. */
  cut() {
    this.#told({ kind: 'cut' });
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  /** Posts a message. Resolves with the response to `id`, if it is a request. */
  async #send(message, id) {
    this.#told({ kind: 'message', from: 'client', message });
    const response = await this.#fetch('POST', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message),
    });
    if (response.status === 404 && this.#sessionId !== undefined) throw new Error(isOver);
    this.#sessionId ??= response.headers.get('mcp-session-id') ?? undefined;
    if (isEventStream(response)) return this.#follow(response, id);
    if (response.status === 202) return undefined;
    const type = response.headers.get('content-type') ?? '';
    if (!type.startsWith('application/json')) throw new Error(`The gateway answered ${response.status}.`);
    const body = await response.json();
    this.#told({ kind: 'message', from: 'server', message: body });
    return body;
  }

  /**
   * Listens to what the server says beside its answers, until the session is over. To the gateway this is the sign that the
   * page is still there: it ends the session of one that is gone.
   */
  async #listen() {
    const { signal } = this.#closing;
    const place = { lastEventId: undefined, retryMs: defaultRetryMs };
    while (!signal.aborted) {
      const headers = place.lastEventId === undefined ? {} : { 'last-event-id': place.lastEventId };
      const response = await this.#fetch('GET', { headers, signal }).catch(() => undefined);
      if (response?.status === 404) {
        this.#told({ kind: 'over', said: isOver });
        return;
      }
      if (response !== undefined && isEventStream(response)) await this.#read(response, undefined, place);
      await new Promise((resolve) => setTimeout(resolve, place.retryMs));
    }
  }

  /** Reads a stream to the response that it is for, over as many connections as that takes. */
  async #follow(first, id) {
    const place = { lastEventId: undefined, retryMs: defaultRetryMs };
    let response = first;
    for (let resumes = 0; resumes <= maxResumes; ) {
      this.#addOpen(1);
      const answer = await this.#read(response, id, place);
      this.#addOpen(-1);
      if (answer !== undefined) return answer;
      if (place.lastEventId === undefined) return undefined;
      do {
        resumes += 1;
        this.#told({ kind: 'waiting', ms: place.retryMs });
        await new Promise((resolve) => setTimeout(resolve, place.retryMs));
        this.#told({ kind: 'resuming', lastEventId: place.lastEventId });
        response = await this.#fetch('GET', { headers: { 'last-event-id': place.lastEventId } }).catch(() => undefined);
      } while (response === undefined && resumes <= maxResumes);
      if (response === undefined || !isEventStream(response)) return undefined;
    }
    return undefined;
  }

  #addOpen(count) {
    this.#open += count;
    this.#told({ kind: 'stream' });
  }

  /** Reads one connection to its end, or to the response to `id`; without one it is that of no request. */
  async #read(response, id, place) {
    try {
      for await (const { data, id: eventId, retryMs } of readEvents(response.body)) {
        if (eventId !== undefined) place.lastEventId = eventId;
        if (retryMs !== undefined) place.retryMs = retryMs;
        if (data === '') {
          if (id !== undefined) this.#told({ kind: 'primed', eventId });
        } else {
          const message = JSON.parse(data);
          this.#told({ kind: 'message', from: 'server', message, eventId });
          if (message.method === undefined && message.id === id) return message;
          if (message.method !== undefined && message.id !== undefined) void this.#answer(message);
        }
      }
      return undefined;
    } catch {
      return undefined; // the connection broke, which is what streams are resumed for
    }
  }

  async #answer(request) {
    const { id } = request;
    const answer = await this.#onAsked(request).then(
      (result) => ({ jsonrpc: '2.0', id, result }),
      (error) => ({ jsonrpc: '2.0', id, error: { code: -32601, message: error.message } }),
    );
    await this.#send(answer).catch((error) => this.#told({ kind: 'failed', said: error.message }));
  }

  #fetch(method, { headers = {}, signal = this.#abort.signal, ...options }) {
    return ask(this.#path, {
      ...options,
      method,
      signal,
      headers: {
        accept: method === 'GET' ? 'text/event-stream' : jsonAndEvents,
        ...(this.#token !== '' && { 'x-gangway-authorization': `Bearer ${this.#token}` }),
        ...(this.#sessionId !== undefined && { 'mcp-session-id': this.#sessionId }),
        ...(this.#version !== undefined && { 'mcp-protocol-version': this.#version }),
        ...headers,
      },
    });
  }
}

const isEventStream = ({ headers }) => (headers.get('content-type') ?? '').startsWith('text/event-stream');
