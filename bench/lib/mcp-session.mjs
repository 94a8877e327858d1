// A client's session over Streamable HTTP. Callbacks and no promises on the hot path.
import { connectTo } from './http-connection.mjs';
import { createSseParser } from './sse-parser.mjs';

export const protocolVersion = '2025-11-25';
/** The first revision without sessions. */
export const statelessVersion = '2026-07-28';
const closeLimitMs = 6_000;
const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const accept = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream';

/** The members of the `_meta` of a client of 2026-07-28, who says of itself in each request what it is, as JSON without the braces. */
export const envelopeOf = (capabilities = {}) =>
  JSON.stringify({
    'io.modelcontextprotocol/protocolVersion': statelessVersion,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }).slice(1, -1);

/** As they stand in a request. */
export const linesOf = (headers) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');

export class McpSession {
  #ports;
  #options;
  #control;
  #stream;
  /** What its requests say of it. */
  #lines;
  #isOpen = false;
  /** Undefined if the gateway gave none. */
  id;
  /** How often its GET stream broke. */
  brokenStreams = 0;

  /**
   * @param ports of the instances, which its exchanges go to in turn
   * @param token what it shows with each request, if anything
   * @param path of the endpoint
   * @param capabilities what it declares
   */
  constructor(ports, { token, path = '/mcp', capabilities = {} } = {}) {
    this.#ports = ports;
    this.#options = { token, path, capabilities };
    this.#lines = token === undefined ? '' : linesOf({ Authorization: `Bearer ${token}` });
    this.#control = connectTo(ports);
  }

  /** A client without a session, which sends these headers with each request. */
  static without(ports, headers, options) {
    const session = new McpSession(ports, options);
    session.#lines += linesOf({ 'Mcp-Protocol-Version': statelessVersion, ...headers });
    return session;
  }

  /** The same session by way of another gateway, or with another id. */
  at(port, id = this.id) {
    const session = new this.constructor([port], this.#options);
    session.#become(id);
    return session;
  }

  /** Posts one request and waits for its answer. */
  async call(request) {
    const { answer } = await this.#exchange(request);
    return answer;
  }

  /** A connection for calls; one carries one call at a time. */
  connect() {
    return connectTo(this.#ports);
  }

  /**
   * Posts one message. The listener has `onMessage(text)`, for each message of the answer, `onDone(error, status, text)`, and perhaps
   * `onHead(headers)` and `onEventId(id)`.
   * @param parts the body: strings and buffers, in ASCII
   * @param more further lines of its head
   */
  post(connection, parts, listener, more = '') {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const head = this.#head('POST', `${accept}\r\nContent-Length: ${length}\r\n${more}`);
    connection.send([head, ...parts], receiverOf(listener));
  }

  /** Opens a GET stream. The listener is that of `post`. */
  get(connection, listener, more = '') {
    connection.send([this.#head('GET', `Accept: text/event-stream\r\n${more}`)], receiverOf(listener));
  }

  /** `initialize`, then `notifications/initialized`. Rejects if either is refused. */
  async open() {
    const clientInfo = { name: 'bench', version: '1' };
    const params = { protocolVersion, capabilities: this.#options.capabilities, clientInfo };
    const initialize = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    const { answer, headers } = await this.#exchange(initialize);
    if (!answer.includes('"result"')) throw new Error(`initialize: ${answer.slice(0, 200)}`);
    this.#become(headers['mcp-session-id']);
    await this.#exchange(initialized);
  }

  /** Opens the standalone GET stream. Resolves once it is there. */
  listen(onMessage) {
    this.#stream = this.connect();
    return new Promise((resolve, reject) => {
      this.get(this.#stream, {
        onHead: (_, status) => (status === 200 ? resolve() : reject(new Error(`GET: HTTP ${status}`))),
        onMessage,
        onDone: (error) => {
          this.brokenStreams += 1;
          reject(error ?? new Error('the GET stream ended'));
        },
      });
    });
  }

  /** Closes the connection of its own exchanges; the next one opens another. Its streams stay. */
  rest() {
    this.#control.destroy();
  }

  /** Ends the session. Resolves with the status of DELETE, or 204 if nothing is kept; undefined if it was not opened or there was no answer. */
  async close() {
    this.#stream?.destroy();
    const status = this.id === undefined ? (this.#isOpen ? 204 : undefined) : await this.#delete();
    this.#control.destroy();
    return status;
  }

  #become(id) {
    this.id = id;
    this.#isOpen = true;
    this.#lines += linesOf({ ...(id && { 'Mcp-Session-Id': id }), 'Mcp-Protocol-Version': protocolVersion });
  }

  #delete() {
    return new Promise((resolve) => {
      setTimeout(resolve, closeLimitMs).unref();
      let status;
      const onHead = (answered) => {
        status = answered;
      };
      this.#control.send([this.#head('DELETE', '')], { onHead, onEnd: () => resolve(status) });
    });
  }

  #exchange(body) {
    return new Promise((resolve, reject) => {
      const got = { answer: '' };
      this.post(this.#control, [body], {
        onHead(headers) {
          got.headers = headers;
        },
        onMessage(text) {
          got.answer = text;
        },
        onDone(error, status, text) {
          if (error !== undefined) reject(error);
          else if (status >= 300) reject(new Error(`HTTP ${status} ${text.slice(0, 200)}`));
          else resolve(got);
        },
      });
    });
  }

  #head(method, more) {
    return `${method} ${this.#options.path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#ports[0]}\r\n${this.#lines}${more}\r\n`;
  }
}

/** Hands the messages of an answer to a listener, be it one body or a stream. */
function receiverOf(listener) {
  let status = 0;
  let takeBody;
  const body = [];
  return {
    onHead(answered, headers) {
      status = answered;
      listener.onHead?.(headers, status);
      const isStream = headers['content-type']?.startsWith('text/event-stream');
      takeBody = isStream ? createSseParser(listener.onMessage, listener.onEventId) : (bytes) => body.push(bytes);
    },
    onBody: (bytes) => takeBody(bytes),
    onEnd(error) {
      const text = body.length > 0 ? Buffer.concat(body).latin1Slice() : '';
      if (error === undefined && status === 200 && text !== '') listener.onMessage(text);
      listener.onDone(error, status, text);
    },
  };
}
