import { readEvents } from './event-stream.js';
import { cancelled, isEventStream, jsonAndEvents, listAll, readJson, resultOf, sendToServer } from './mcp-http.js';
import { encodeHeader, mirroredHeaders } from './request-snippets.js';

const metaPrefix = 'io.modelcontextprotocol/';

/** The number of times that a request may ask for input. */
const maxRounds = 20;

/**
 * An MCP client of the modern era for a person who tries a server. Each request is independent: there is no session, and a
 * stream that breaks is not resumed. The server asks for input with a result, and the request is then repeated.
 */
export class ModernClient {
  /** Streams of this revision cannot be cut and resumed. */
  hasStream = false;
  resumes = false;
  canSubscribe = false;
  #path;
  #token;
  #revision;
  #onEntry;
  #onRequest;
  #capabilities;
  #nextId = 1;
  /** Ends the open requests. */
  #closing = new AbortController();
  /** The parameters that the calls of a tool repeat as headers, by tool. */
  #paramHeaders = new Map();

  /** @param {ConstructorParameters<typeof import('./mcp-client.js').McpClient>[0]} options */
  constructor({ path, token, revision, capabilities, onEntry, onRequest }) {
    this.#path = path;
    this.#token = token;
    this.#revision = revision;
    this.#capabilities = capabilities;
    this.#onEntry = onEntry;
    this.#onRequest = onRequest;
  }

  /** Asks the server what it offers. */
  async open() {
    const { capabilities = {}, _meta } = await this.request('server/discover', {});
    this.canSubscribe = capabilities.resources?.subscribe === true;
    const serverInfo = { name: 'The server', version: '', ..._meta?.[`${metaPrefix}serverInfo`] };
    return { serverInfo, capabilities, protocolVersion: this.#revision.name };
  }

  close() {
    this.#closing.abort();
    return Promise.resolve();
  }

  async list(method, member) {
    const items = await listAll(this, method, member);
    if (method === 'tools/list')
      for (const { name, inputSchema } of items) this.#paramHeaders.set(name, [...mirroredIn(inputSchema)]);
    return items;
  }

  /** Sends a request, and repeats it with the person's answers while the server asks for input. */
  async request(method, params, { signal, onProgress } = {}) {
    let retry = {};
    for (let round = 0; round < maxRounds; round += 1) {
      const result = resultOf(await this.#send(method, { ...params, ...retry }, { signal, onProgress }));
      if (result?.resultType !== 'input_required') return result;
      const { requestState, inputRequests = {} } = result;
      retry = {
        inputResponses: await this.#answer(inputRequests),
        ...(requestState !== undefined && { requestState }),
      };
    }
    throw new Error(`The server asked for input ${maxRounds} times.`);
  }

  /**
   * Subscribes to a resource, until the returned function is called.
   * @param {() => void} onUpdate called for each change
   */
  async subscribe(uri, onUpdate) {
    const abort = new AbortController();
    await new Promise((resolve, reject) => {
      const onMessage = ({ method }) => {
        if (method === 'notifications/subscriptions/acknowledged') resolve();
        if (method === 'notifications/resources/updated') onUpdate();
      };
      const params = { notifications: { resourceSubscriptions: [uri] } };
      this.#send('subscriptions/listen', params, { signal: abort.signal, onMessage })
        .then(resultOf)
        .then(resolve, reject);
    });
    return () => abort.abort();
  }

  /** Asks the person for each answer, one after the other. */
  async #answer(inputRequests) {
    const answers = {};
    for (const [key, request] of Object.entries(inputRequests)) answers[key] = await this.#onRequest(request);
    return answers;
  }

  /** Posts a request. Resolves with its response. */
  async #send(method, params, { signal, onProgress, onMessage }) {
    const id = this.#nextId++;
    const _meta = {
      [`${metaPrefix}protocolVersion`]: this.#revision.name,
      [`${metaPrefix}clientInfo`]: { name: 'mcp-gangway-playground', version: '1' },
      [`${metaPrefix}clientCapabilities`]: this.#capabilities,
      ...(onProgress !== undefined && { progressToken: `play-${id}` }),
    };
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta } };
    this.#onEntry({ kind: 'message', from: 'client', message });
    const ends = signal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, signal]);
    const options = {
      method: 'POST',
      signal: ends,
      headers: this.#headers(message),
      body: JSON.stringify(message),
    };
    try {
      const response = await sendToServer(this.#path, this.#token, options);
      if (isEventStream(response)) return await this.#read(response, id, { onProgress, onMessage });
      const body = await readJson(response);
      this.#onEntry({ kind: 'message', from: 'server', message: body });
      return body;
    } catch (error) {
      const failure = ends.aborted ? cancelled() : error;
      this.#onEntry({ kind: 'unanswered', id, isCancelled: ends.aborted, text: failure.message });
      throw failure;
    }
  }

  #headers(message) {
    const { method, params } = message;
    const mirrored = method === 'tools/call' ? (this.#paramHeaders.get(params.name) ?? []) : [];
    return {
      'content-type': 'application/json',
      accept: jsonAndEvents,
      ...Object.fromEntries(mirroredHeaders(this.#revision, message)),
      ...Object.fromEntries(
        mirrored
          .map(({ header, path }) => [
            `mcp-param-${header}`,
            path.reduce((value, key) => value?.[key], params.arguments),
          ])
          .filter(([, value]) => value !== undefined && value !== null)
          .map(([header, value]) => [header, encodeHeader(String(value))]),
      ),
    };
  }

  async #read(response, id, { onProgress, onMessage }) {
    for await (const { data, id: eventId } of readEvents(response.body)) {
      if (data === '') continue;
      const message = JSON.parse(data);
      this.#onEntry({ kind: 'message', from: 'server', message, eventId });
      onMessage?.(message);
      if (message.method === undefined && message.id === id) return message;
      if (message.method === 'notifications/progress') onProgress?.(message.params);
    }
    throw new Error('The stream ended without an answer.');
  }
}

/** Finds the parameters that a schema marks with `x-mcp-header` (2026-07-28, server/tools). */
function* mirroredIn({ properties = {} } = {}, path = []) {
  for (const [key, schema] of Object.entries(properties)) {
    const header = schema?.['x-mcp-header'];
    if (typeof header === 'string') yield { header, path: [...path, key] };
    if (typeof schema === 'object' && schema !== null) yield* mirroredIn(schema, [...path, key]);
  }
}
