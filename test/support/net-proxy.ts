import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createInbox, type Inbox } from './wait-for.ts';

/** What one direction of a connection does to bytes. */
export interface Direction {
  /** Milliseconds that every byte is late. */
  readonly latencyMs?: number;
  readonly bytesPerSecond?: number;
  /** The connection is cut after exactly so many bytes of this direction have passed. */
  readonly cutAfterBytes?: number;
}

/** What becomes of one connection. */
export interface Plan {
  readonly toServer?: Direction;
  readonly toClient?: Direction;
  /** How the client sees a cut: as an end after the last byte (default), or as a reset, which may destroy bytes before it. */
  readonly cutBy?: 'end' | 'reset';
}

/** One proxied connection. */
export interface ProxiedConnection {
  /** Counts the connections of the proxy from 0. */
  readonly index: number;
  /** Bytes that have passed. */
  readonly passed: { readonly toServer: number; readonly toClient: number };
  /** The heads of the requests that the client has sent over it. */
  readonly requests: readonly string[];
  /** Cuts it for both sides. */
  cut(): void;
  /** From now on no byte and no end passes, while both sides stay open: a half-open connection. */
  blackHole(): void;
  /** Resolves when the server's side is closed, whoever closed it. */
  readonly serverClosed: Promise<void>;
  /** Resolves when both sides are closed. */
  readonly closed: Promise<void>;
  readonly isOpen: boolean;
}

export interface NetProxy extends AsyncDisposable {
  readonly port: number;
  /** The connections so far, in the order in which they came. */
  readonly connections: Inbox<ProxiedConnection>;
  /** The address of something on the server, by way of the proxy. */
  urlOf(url: string): string;
  /** The heads of all requests. A connection has them in order; between connections it is that in which they opened. */
  requests(): string[];
  /** Cuts what is open. */
  cutAll(): void;
  close(): Promise<void>;
}

/** A TCP proxy on loopback in this process, towards a port of 127.0.0.1. `plan` decides about each new connection. */
export async function startNetProxy(
  targetPort: number,
  { plan = () => ({}) }: { plan?(index: number): Plan } = {},
): Promise<NetProxy> {
  const connections = createInbox<ProxiedConnection>();
  // Half-open, so that what was on its way to the one side is not thrown away when the other one ends.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const index = connections.items.length;
    connections.push(proxy(index, client, targetPort, plan(index)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const cutAll = (): void => {
    for (const connection of connections.items) connection.cut();
  };
  const close = async (): Promise<void> => {
    server.close();
    cutAll();
    await Promise.all(connections.items.map(({ closed }) => closed));
  };
  return {
    port,
    connections,
    urlOf(url) {
      const proxied = new URL(url);
      proxied.port = String(port);
      return proxied.href;
    },
    requests: () => connections.items.flatMap(({ requests }) => requests),
    cutAll,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function proxy(index: number, client: Socket, targetPort: number, plan: Plan): ProxiedConnection {
  const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const passed = { toServer: 0, toClient: 0 };
  const requests: string[] = [];
  const state = { isBlackHole: false, isCut: false };
  const closeOf = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const serverClosed = closeOf(upstream);
  const closed = Promise.all([serverClosed, closeOf(client)]).then(() => undefined);

  const cut = (): void => {
    state.isCut = true;
    upstream.destroy();
    if (plan.cutBy === 'reset') client.resetAndDestroy();
    else if (state.isBlackHole) client.destroy();
    // The end goes out behind the bytes that have passed; the client may still write, which nobody reads any more.
    else client.end(() => client.destroy());
  };
  const relay = (from: Socket, to: Socket, name: keyof typeof passed): void => {
    const read = createRelay(to, plan[name] ?? {}, {
      from,
      onPassed: (bytes) => {
        passed[name] += bytes;
      },
      onCut: cut,
    });
    from.on('data', (chunk: Buffer) => {
      if (state.isCut || state.isBlackHole) return;
      if (name === 'toServer') requests.push(...headsIn(chunk));
      read.take(chunk);
    });
    from.on('end', () => {
      if (state.isBlackHole) return void from.end();
      if (!state.isCut) read.end();
    });
    from.on('error', () => undefined); // told by `close`
    from.on('close', () => {
      // A side that is gone without an end was reset: so is the other one.
      if (!state.isBlackHole && !state.isCut && !from.readableEnded) to.resetAndDestroy();
    });
  };
  relay(client, upstream, 'toServer');
  relay(upstream, client, 'toClient');

  return {
    index,
    passed,
    requests,
    cut,
    blackHole() {
      state.isBlackHole = true;
      client.resume();
      upstream.resume();
    },
    serverClosed,
    closed,
    get isOpen() {
      return !client.destroyed;
    },
  };
}

interface Relay {
  take(chunk: Buffer): void;
  end(): void;
}

/** One direction: passes bytes on in order, late and slowly as planned, until the cut. */
function createRelay(
  to: Socket,
  { latencyMs = 0, bytesPerSecond, cutAfterBytes = Number.POSITIVE_INFINITY }: Direction,
  { from, onPassed, onCut }: { from: Socket; onPassed(bytes: number): void; onCut(): void },
): Relay {
  let left = cutAfterBytes;
  let freeAt = 0;
  let isCut = false;
  to.on('drain', () => from.resume());

  const pass = (chunk: Buffer): void => {
    if (isCut || to.destroyed) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    onPassed(part.length);
    if (part.length > 0 && !to.write(part)) from.pause();
    if (left > 0) return;
    isCut = true;
    onCut();
  };
  const isImmediate = latencyMs === 0 && bytesPerSecond === undefined;
  /** Runs what is to be done in order, when the bytes before it have passed. */
  const later = (bytes: number, action: () => void): void => {
    if (isImmediate) return action();
    const now = performance.now();
    freeAt = Math.max(now + latencyMs, freeAt) + (bytesPerSecond === undefined ? 0 : (bytes * 1_000) / bytesPerSecond);
    // What waits here is bounded by the reader's own buffer: nothing more is read meanwhile.
    from.pause();
    setTimeout(() => {
      if (!to.writableNeedDrain) from.resume();
      action();
    }, freeAt - now);
  };
  if (left <= 0) queueMicrotask(onCut);
  return {
    take: (chunk) => later(chunk.length, () => pass(chunk)),
    end: () => later(0, () => void to.end()),
  };
}

/** The heads of the requests that begin with this chunk: clients write a head at once, and small ones. */
function headsIn(chunk: Buffer): string[] {
  const text = chunk.toString('latin1');
  return /^(?:GET|POST|DELETE) \S+ HTTP\/1\.1\r\n/.test(text) ? [text.split('\r\n\r\n', 1)[0] ?? ''] : [];
}
