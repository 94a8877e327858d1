import { readEvents } from './event-stream.js';
import { cancelled, isEventStream, jsonAndEvents, listAll, readJson, resultOf, sendToServer } from './mcp-http.js';

/** The reconnect delay before the server has sent one. */
const defaultRetryMs = 2_000;

/** The number of attempts to resume a stream. */
const maxResumes = 5;

/** Returns the response of a stream; throws if the stream had none. */
function requireAnswer(response) {
  if (response === undefined) throw new Error('The stream ended without an answer and could not be resumed.');
  return response;
}

const sessionEndedText = 'The session has ended. Press Connect to start another one.';

/**
 * An MCP client for a person who tries a server: Streamable HTTP with a session (2025-11-25). Requests go through the
 * admin port, which relays them to the endpoint of the gateway. Broken streams are resumed by `Last-Event-ID`.
 */
export class McpClient {
  #path;
  #token;
  #revision;
  #onEntry;
  #onRequest;
  #capabilities;
  #sessionId;
  #version;
  #nextId = 1;
  /** Aborts the streams that `cut` breaks. */
  #abort = new AbortController();
  #closing = new AbortController();
  #open = 0;
  /** The receivers of progress, by token. */
  #onProgress = new Map();
  /** The receivers of resource updates, by URI. */
  #onUpdate = new Map();
  /** True: a broken stream is resumed, so `cut` shows something. */
  resumes = true;
  /** True if the server reports changes of resources. */
  canSubscribe = false;

  /**
   * @param {{ path: string, token: string, revision: { name: string, headers: object[] }, capabilities: object, onEntry(entry: object): void,
   *   onRequest(request: object): Promise<object> }} options `onEntry` receives every message and event of the
   *   connection, with `request` if it belongs to the stream of an answer; `onRequest` resolves with the result of a request of the server
   */
  constructor({ path, token, revision, capabilities, onEntry, onRequest }) {
    this.#path = path;
    this.#token = token;
    this.#revision = revision;
    this.#capabilities = capabilities;
    this.#onEntry = onEntry;
    this.#onRequest = onRequest;
  }

  /** True while the stream of an answer is open, so that `cut` has an effect. */
  get hasStream() {
    return this.#open > 0;
  }

  /** Opens the session. */
  async open() {
    const result = await this.request('initialize', {
      protocolVersion: this.#revision.name,
      capabilities: this.#capabilities,
      clientInfo: { name: 'mcp-gangway-playground', version: '1' },
    });
    this.#version = result.protocolVersion;
    this.canSubscribe = result.capabilities.resources?.subscribe === true;
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

  list(method, member) {
    return listAll(this, method, member);
  }

  /**
   * Subscribes to a resource, until the returned function is called.
   * @param {() => void} onUpdate called for each change
   */
  async subscribe(uri, onUpdate) {
    this.#onUpdate.set(uri, onUpdate);
    await this.request('resources/subscribe', { uri });
    return () => {
      this.#onUpdate.delete(uri);
      this.request('resources/unsubscribe', { uri }).catch(() => undefined);
    };
  }

  /**
   * Sends a request. Resolves with its result; rejects with the error of the server, or with the reason why there is no
   * answer.
   * @param {{ signal?: AbortSignal, onProgress?(progress: object): void }} options `signal` cancels the request
   */
  async request(method, params, { signal, onProgress } = {}) {
    const id = this.#nextId++;
    const progressToken = `play-${id}`;
    // The progress token asks for progress, which shows that the answer is a stream.
    const sent = onProgress === undefined ? params : { ...params, _meta: { progressToken } };
    if (onProgress !== undefined) this.#onProgress.set(progressToken, onProgress);
    try {
      const response = await Promise.race([
        this.#send({ jsonrpc: '2.0', id, method, params: sent }, id).then(requireAnswer),
        this.#cancelled(id, signal),
      ]).catch((error) => {
        this.#onEntry({ kind: 'unanswered', id, isCancelled: signal?.aborted === true, text: error.message });
        throw error;
      });
      return resultOf(response);
    } finally {
      this.#onProgress.delete(progressToken);
    }
  }

  /** Cancels a request when the signal is aborted, and rejects (2025-11-25, basic/utilities/cancellation). */
  #cancelled(requestId, signal) {
    return new Promise((_, reject) => {
      signal?.addEventListener('abort', () => {
        const params = { requestId, reason: 'Cancelled in the playground.' };
        void this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params }).catch(() => undefined);
        reject(cancelled());
      });
    });
  }

  /** Breaks the connection of the open stream, as a lost network would. */
  cut() {
    this.#onEntry({ kind: 'cut' });
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  /** Posts a message. Resolves with the response to `id`, if it is a request. */
  async #send(message, id) {
    this.#onEntry({ kind: 'message', from: 'client', message });
    const response = await this.#fetch('POST', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message),
    });
    if (response.status === 404 && this.#sessionId !== undefined) throw new Error(sessionEndedText);
    this.#sessionId ??= response.headers.get('mcp-session-id') ?? undefined;
    if (isEventStream(response)) return this.#follow(response, id);
    if (response.status === 202) return undefined;
    const body = await readJson(response);
    this.#onEntry({ kind: 'message', from: 'server', message: body });
    return body;
  }

  /**
   * Receives messages of the server outside of answers, until the session ends. The open request also shows the gateway
   * that the page is still there: the gateway ends the session of a page that is gone.
   */
  async #listen() {
    const { signal } = this.#closing;
    const position = { lastEventId: undefined, retryMs: defaultRetryMs };
    while (!signal.aborted) {
      const headers = position.lastEventId === undefined ? {} : { 'last-event-id': position.lastEventId };
      const response = await this.#fetch('GET', { headers, signal }).catch(() => undefined);
      if (response?.status === 404) {
        this.#onEntry({ kind: 'over', text: sessionEndedText });
        return;
      }
      if (response !== undefined && isEventStream(response)) await this.#read(response, undefined, position);
      await new Promise((resolve) => setTimeout(resolve, position.retryMs));
    }
  }

  /** Reads a stream until the response to its request, over several connections if needed. */
  async #follow(first, id) {
    const position = { lastEventId: undefined, retryMs: defaultRetryMs };
    let response = first;
    for (let resumes = 0; resumes <= maxResumes; ) {
      this.#addOpen(1);
      const answer = await this.#read(response, id, position);
      this.#addOpen(-1);
      if (answer !== undefined) return answer;
      if (position.lastEventId === undefined) return undefined;
      do {
        resumes += 1;
        this.#onEntry({ kind: 'waiting', ms: position.retryMs, request: id });
        await new Promise((resolve) => setTimeout(resolve, position.retryMs));
        this.#onEntry({ kind: 'resuming', lastEventId: position.lastEventId, request: id });
        response = await this.#fetch('GET', { headers: { 'last-event-id': position.lastEventId } }).catch(
          () => undefined,
        );
      } while (response === undefined && resumes <= maxResumes);
      if (response === undefined || !isEventStream(response)) return undefined;
    }
    return undefined;
  }

  #addOpen(count) {
    this.#open += count;
    this.#onEntry({ kind: 'stream' });
  }

  /** Reads one connection until the response to `id`, or until its end if there is no `id`. */
  async #read(response, id, position) {
    try {
      for await (const { data, id: eventId, retryMs } of readEvents(response.body)) {
        if (eventId !== undefined) position.lastEventId = eventId;
        if (retryMs !== undefined) position.retryMs = retryMs;
        if (data === '') {
          if (id !== undefined) this.#onEntry({ kind: 'primed', eventId, request: id });
        } else {
          const message = JSON.parse(data);
          this.#onEntry({ kind: 'message', from: 'server', message, eventId, request: id });
          if (message.method === undefined && message.id === id) return message;
          if (message.method === 'notifications/progress')
            this.#onProgress.get(message.params?.progressToken)?.(message.params);
          if (message.method === 'notifications/resources/updated') this.#onUpdate.get(message.params?.uri)?.();
          if (message.method !== undefined && message.id !== undefined) void this.#answer(message);
        }
      }
      return undefined;
    } catch {
      return undefined; // the connection broke; the caller resumes the stream
    }
  }

  async #answer(request) {
    const { id } = request;
    const answer = await this.#onRequest(request).then(
      (result) => ({ jsonrpc: '2.0', id, result }),
      (error) => ({ jsonrpc: '2.0', id, error: { code: error.code ?? -32603, message: error.message } }),
    );
    await this.#send(answer).catch((error) => this.#onEntry({ kind: 'failed', text: error.message }));
  }

  #fetch(method, { headers = {}, signal = this.#abort.signal, ...options }) {
    return sendToServer(this.#path, this.#token, {
      ...options,
      method,
      signal,
      headers: {
        accept: method === 'GET' ? 'text/event-stream' : jsonAndEvents,
        ...(this.#sessionId !== undefined && { 'mcp-session-id': this.#sessionId }),
        ...(this.#version !== undefined && { 'mcp-protocol-version': this.#version }),
        ...headers,
      },
    });
  }
}
