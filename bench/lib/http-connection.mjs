// A small HTTP/1.1 client on a raw socket, cheap enough to load a gateway from the other core.
import net from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');
const nothing = Buffer.alloc(0);

/**
 * One keep-alive connection; one exchange at a time. The listener of an exchange has `onHead(status, headers)`,
 * `onBody(bytes)` and `onEnd(error)`.
 */
class HttpConnection {
  #port;
  #socket;
  #listener;
  #state = 'head';
  #held = nothing;
  #left = 0;
  #closes = false;

  constructor(port) {
    this.#port = port;
  }

  /** @param parts the request: strings and buffers */
  send(parts, listener) {
    if (this.#listener !== undefined) throw new Error('an exchange is under way');
    this.#listener = listener;
    this.#socket ??= this.#connect();
    const socket = this.#socket;
    socket.cork();
    for (const part of parts) socket.write(part);
    socket.uncork();
  }

  destroy() {
    this.#listener = undefined;
    this.#drop();
  }

  #connect() {
    const socket = net.connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    const fail = (error) => {
      if (this.#socket !== socket) return;
      this.#drop();
      this.#tellEnd(error);
    };
    socket.on('data', (chunk) => {
      if (this.#socket === socket) this.#take(chunk);
    });
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('connection closed')));
    return socket;
  }

  #drop() {
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#state = 'head';
    this.#held = nothing;
  }

  #tellEnd(error) {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onEnd(error);
  }

  #finish() {
    this.#state = 'head';
    if (this.#closes) this.#drop();
    this.#tellEnd();
  }

  #take(chunk) {
    let rest = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#held = nothing;
    while (rest.length > 0 && this.#socket !== undefined) {
      const used = this.#takeSome(rest);
      if (used === 0) {
        this.#held = rest;
        return;
      }
      rest = rest.subarray(used);
    }
  }

  /** How many bytes it used; 0 to get the same bytes again with more behind them. */
  #takeSome(bytes) {
    if (this.#state === 'head') return this.#takeHead(bytes);
    if (this.#state === 'chunk size') return this.#takeChunkSize(bytes);
    const used = Math.min(this.#left, bytes.length);
    this.#left -= used;
    const isBody = this.#state === 'body' || this.#state === 'chunk';
    if (isBody) this.#listener?.onBody?.(used === bytes.length ? bytes : bytes.subarray(0, used));
    if (this.#left > 0) return used;
    if (this.#state === 'chunk') [this.#state, this.#left] = ['chunk end', 2];
    else if (this.#state === 'chunk end') this.#state = 'chunk size';
    else this.#finish();
    return used;
  }

  #takeHead(bytes) {
    const end = bytes.indexOf(headEnd);
    if (end === -1) return 0;
    const [first, ...lines] = bytes.latin1Slice(0, end).split('\r\n');
    const headers = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const status = Number(first.slice(9, 12));
    this.#closes = headers.connection === 'close';
    this.#listener?.onHead?.(status, headers);
    if (headers['transfer-encoding'] === 'chunked') this.#state = 'chunk size';
    else {
      [this.#state, this.#left] = ['body', Number(headers['content-length'] ?? 0)];
      if (this.#left === 0) this.#finish();
    }
    return end + headEnd.length;
  }

  #takeChunkSize(bytes) {
    const end = bytes.indexOf(10);
    if (end === -1) return 0;
    const size = Number.parseInt(bytes.latin1Slice(0, end), 16);
    if (Number.isNaN(size)) this.#socket.destroy(new Error('bad chunk size'));
    [this.#state, this.#left] = size === 0 ? ['last end', 2] : ['chunk', size];
    return end + 1;
  }
}

let made = 0;

/**
 * One client's way to several instances, as a balancer without stickiness sends it. The load generator does that itself, since a balancer
 * between would cost more than the gateways that are measured.
 */
class RotatingConnection {
  #connections;
  #next;

  constructor(ports) {
    this.#connections = ports.map((port) => new HttpConnection(port));
    this.#next = made++ % ports.length; // or all clients would go to one instance at a time
  }

  send(parts, listener) {
    const connection = this.#connections[this.#next];
    this.#next = (this.#next + 1) % this.#connections.length;
    connection.send(parts, listener);
  }

  destroy() {
    for (const connection of this.#connections) connection.destroy();
  }
}

/** A connection to a target, whose exchanges go to its ports in turn. */
export const connectTo = (ports) => (ports.length === 1 ? new HttpConnection(ports[0]) : new RotatingConnection(ports));
