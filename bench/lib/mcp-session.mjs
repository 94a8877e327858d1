// A client's session over Streamable HTTP. Callbacks and no promises on the hot path.
import { connectTo } from './rotating-connection.mjs';
import { createSseParser } from './sse-parser.mjs';

export const protocolVersion = '2025-11-25';
/** The first revision without sessions. */
export const statelessVersion = '2026-07-28';
const closeLimitMs = 6_000;

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
});
const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

export class McpSession {
  #ports;
  #control;
  #stream;
  #headers = '';
  #authorization;
  #path;
  #isStateless = false;
  /** How often its GET stream broke. */
  brokenStreams = 0;

  /**
   * @param ports of the instances, which its exchanges go to in turn
   * @param token what it shows with each request, if anything
   * @param path of the endpoint
   */
  constructor(ports, { token, path = '/mcp' } = {}) {
    this.#ports = ports;
    this.#path = path;
    this.#authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
    this.#control = connectTo(ports);
  }

  /** A client without a session, which sends these headers with each request. */
  static without(ports, headers) {
    const session = new McpSession(ports);
    const all = Object.entries({ 'Mcp-Protocol-Version': statelessVersion, ...headers });
    session.#headers = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return session;
  }

  /** What its requests have to say of it, a line for each header. */
  get headers() {
    return this.#headers.split('\r\n').filter((line) => line !== '');
  }

  /** The same session by way of another gateway. */
  by(port) {
    const session = new McpSession([port]);
    session.#headers = this.#headers;
    session.#authorization = this.#authorization;
    return session;
  }

  /** Posts one request and waits for its answer. */
  async call(request) {
    let answer = '';
    await this.#exchange(request, {
      onMessage: (text) => {
        answer = text;
      },
    });
    return answer;
  }

  /** A connection for calls; one carries one call at a time. */
  connect() {
    return connectTo(this.#ports);
  }

  /**
   * Posts one message. The listener has `onMessage(text)`, for each message of the answer, and
   * `onDone(error, status, text)`.
   * @param parts the body: strings and buffers, in ASCII
   */
  post(connection, parts, listener) {
    let status = 0;
    let takeBody;
    const body = [];
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const accept = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream';
    const head = this.#head('POST', `${accept}\r\nContent-Length: ${length}\r\n`);
    connection.send([head, ...parts], {
      onHead(answered, headers) {
        status = answered;
        listener.onHead?.(headers);
        const isStream = headers['content-type']?.startsWith('text/event-stream');
        takeBody = isStream ? createSseParser(listener.onMessage) : (bytes) => body.push(bytes);
      },
      onBody: (bytes) => takeBody(bytes),
      onEnd(error) {
        const text = body.length > 0 ? Buffer.concat(body).latin1Slice() : '';
        if (error === undefined && status === 200 && text !== '') listener.onMessage(text);
        listener.onDone(error, status, text);
      },
    });
  }

  /** `initialize`, then `notifications/initialized`. Rejects if either is refused. */
  async open() {
    let answer = '';
    let id;
    await this.#exchange(initialize, {
      onHead: (headers) => {
        id = headers['mcp-session-id'];
      },
      onMessage: (text) => {
        answer = text;
      },
    });
    if (!answer.includes('"result"')) throw new Error(`initialize: ${answer.slice(0, 200)}`);
    this.#isStateless = id === undefined;
    const sessionLine = this.#isStateless ? '' : `Mcp-Session-Id: ${id}\r\n`;
    this.#headers = `${sessionLine}Mcp-Protocol-Version: ${protocolVersion}\r\n`;
    await this.#exchange(initialized, { onMessage: () => undefined });
  }

  /** Opens the standalone GET stream. */
  listen(onMessage) {
    this.#stream = this.connect();
    return new Promise((resolve, reject) => {
      this.#stream.send([this.#head('GET', 'Accept: text/event-stream\r\n')], {
        onHead: (status) => (status === 200 ? resolve() : reject(new Error(`GET: HTTP ${status}`))),
        onBody: createSseParser(onMessage),
        onEnd: (error) => {
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
    const status = this.#isStateless ? 204 : this.#headers === '' ? undefined : await this.#delete();
    this.#control.destroy();
    return status;
  }

  #delete() {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, closeLimitMs);
      const done = (status) => {
        clearTimeout(timer);
        resolve(status);
      };
      let status;
      this.#control.send([this.#head('DELETE', '')], {
        onHead(answered) {
          status = answered;
        },
        onEnd: () => done(status),
      });
    });
  }

  #exchange(body, listener) {
    return new Promise((resolve, reject) => {
      this.post(this.#control, [body], {
        ...listener,
        onDone(error, status, text) {
          if (error !== undefined) reject(error);
          else if (status >= 300) reject(new Error(`HTTP ${status} ${text.slice(0, 200)}`));
          else resolve();
        },
      });
    });
  }

  #head(method, more) {
    return `${method} ${this.#path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#ports[0]}\r\n${this.#authorization}${this.#headers}${more}\r\n`;
  }
}
