import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createInbox, type Inbox } from './wait-for.ts';

/** One request that the balancer received. */
export interface RoutedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The backend that got it; undefined if none accepted it. */
  readonly backend: number | undefined;
}

export interface RoundRobinOptions {
  /** The base URLs (`http://127.0.0.1:<port>`) of the backends. */
  readonly backends: readonly string[];
  /**
   * Chooses the backend of a request; undefined selects the next one. The header `x-instance` of a request has
   * precedence.
   */
  choose?(request: IncomingMessage): number | undefined;
  /** False: `requests` stays empty, for runs of hours. */
  readonly isRecorded?: boolean;
}

/** A load balancer without stickiness. */
export interface RoundRobin extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:<port>` */
  readonly baseUrl: string;
  /** The requests, in the order in which backends were found for them. */
  readonly requests: Inbox<RoutedRequest>;
  /** Replaces the address of a backend, or adds one. */
  setBackend(index: number, baseUrl: string): void;
  /**
   * Takes a backend out of the rotation, as after failed health checks, or back into it. `x-instance` still reaches it.
   */
  setInRotation(index: number, isInRotation: boolean): void;
  /** Replaces the choice of backends; without an argument, the next backend is used. */
  choose(choose?: (request: IncomingMessage) => number | undefined): void;
  close(): Promise<void>;
}

/** The header with which a test chooses a backend, and which names the backend in an answer. */
export const instanceHeader = 'x-instance';

/**
 * Starts the balancer. Each request, not each connection, goes to the next backend that accepts a connection. Bodies
 * are streamed in both directions. It sends nothing of its own except 502 where no backend accepts. If a backend's
 * connection breaks, so does the client's. It waits for a frozen backend without a limit.
 */
export async function startRoundRobin({ backends, choose, isRecorded = true }: RoundRobinOptions): Promise<RoundRobin> {
  const urls = [...backends];
  const outOfRotation = new Set<number>();
  const requests = createInbox<RoutedRequest>();
  let chooser = choose;
  const record = (request: RoutedRequest): void => {
    if (isRecorded) requests.push(request);
  };
  let last = -1;

  /** The backends that a request may go to, the best first. */
  const candidatesOf = (request: IncomingMessage): readonly number[] => {
    const asked = request.headers[instanceHeader];
    const chosen = asked === undefined ? chooser?.(request) : Number(asked);
    if (chosen !== undefined) return urls[chosen] === undefined ? [] : [chosen];
    last = (last + 1) % urls.length;
    return urls.map((_, offset) => (last + offset) % urls.length).filter((index) => !outOfRotation.has(index));
  };
  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    request.on('error', () => undefined); // the `close` of the response reports it
    let socket: Socket | undefined;
    let backend: number | undefined;
    for (const candidate of candidatesOf(request)) {
      socket = await connectTo(urls[candidate] ?? '');
      backend = candidate;
      if (socket !== undefined) break;
    }
    const { method = '', url: path = '', headers } = request;
    if (socket === undefined || backend === undefined) {
      record({ method, path, headers, backend: undefined });
      response.writeHead(502, { 'Content-Type': 'text/plain' }).end('No instance accepts a connection.\n');
      return;
    }
    record({ method, path, headers, backend });
    pass(request, response, socket, backend);
  };

  const server = createServer({ noDelay: true, requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
  server.on('request', (request, response) => {
    route(request, response).catch((error: Error) => response.destroy(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    setBackend(index, baseUrl) {
      urls[index] = baseUrl;
    },
    setInRotation(index, isInRotation) {
      if (isInRotation) outOfRotation.delete(index);
      else outOfRotation.add(index);
    },
    choose(chosen) {
      chooser = chosen;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A connection to a backend, or undefined if it accepts none. */
async function connectTo(baseUrl: string): Promise<Socket | undefined> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  return new Promise((resolve) => {
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      socket.on('error', () => undefined); // the request that uses the socket reports it
      resolve(socket);
    });
    socket.once('error', () => resolve(undefined));
  });
}

/** Passes a request on over a connection, and its answer back. */
function pass(request: IncomingMessage, response: ServerResponse, socket: Socket, backend: number): void {
  if (response.destroyed) return void socket.destroy(); // the client left meanwhile
  const upstream = httpRequest({
    method: request.method,
    path: request.url,
    headers: endToEnd(request.rawHeaders),
    createConnection: () => socket,
  });
  const breakOff = (): void => {
    // What came before is delivered; the end comes without the last chunk, so that it is no orderly one.
    if (!response.writableFinished) response.socket?.destroySoon();
    upstream.destroy();
  };
  upstream.on('error', breakOff);
  upstream.on('close', () => {
    if (!response.headersSent) breakOff();
  });
  response.on('close', () => void upstream.destroy());
  upstream.on('response', (answer) => {
    const head = [...endToEnd(answer.rawHeaders), instanceHeader, String(backend)];
    response.writeHead(answer.statusCode ?? 0, answer.statusMessage ?? '', head);
    response.flushHeaders();
    answer.pipe(response, { end: false });
    answer.on('error', breakOff);
    answer.on('close', () => (answer.complete ? response.end() : breakOff()));
  });
  request.pipe(upstream);
}

/**
 * Raw headers without those that belong to one connection alone (RFC 9110, 7.6.1); the framing stays as it was sent.
 */
function endToEnd(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]];
    if (!['connection', 'keep-alive', instanceHeader].includes(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}
