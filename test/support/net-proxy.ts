import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createRelay, type Direction } from './net-relay.ts';
import { createInbox, type Inbox } from './wait-for.ts';

export type { Direction } from './net-relay.ts';

export type DirectionName = 'toServer' | 'toClient';

/** The plan of one connection. */
export interface Plan {
  readonly toServer?: Direction;
  readonly toClient?: Direction;
  /** The client sees a cut as an end after the last byte (default), or as a reset, which may destroy earlier bytes. */
  readonly cutBy?: 'end' | 'reset';
}

/** One proxied connection. */
export interface ProxiedConnection {
  /** Counts the connections of the proxy from 0. */
  readonly index: number;
  /** The client's own port, which tells its process; see `processOf`. */
  readonly clientPort: number;
  /** Bytes that have passed. */
  readonly passed: { readonly toServer: number; readonly toClient: number };
  /** The heads of the HTTP requests on this connection. */
  readonly requests: readonly string[];
  /** Changes the plan. A direction that is not named continues without hindrance. */
  set(plan: Plan): void;
  /** Cuts the connection for both sides; the client sees the cut of the plan. */
  cut(): void;
  /** Resets the connection for both sides. */
  reset(): void;
  /**
   * From now on no byte and no end passes (in one direction, if one is named), while both sides stay open: a half-open
   * connection. What is sent meanwhile is lost for ever; see `Direction.isHeld` for what is late.
   */
  blackHole(direction?: DirectionName): void;
  /** Resolves when the server's side is closed, whoever closed it. */
  readonly serverClosed: Promise<void>;
  /** Resolves when both sides are closed. */
  readonly closed: Promise<void>;
  readonly isOpen: boolean;
  readonly isBlackHole: boolean;
}

export interface NetProxy extends AsyncDisposable {
  readonly port: number;
  /** The connections so far, in order. */
  readonly connections: Inbox<ProxiedConnection>;
  /** The open connections, also if they are not recorded. */
  open(): readonly ProxiedConnection[];
  /** The number of open connections. */
  readonly openCount: number;
  /** The address of something on the server, by way of the proxy; also of a Redis (`redis://…`). */
  urlOf(url: string): string;
  /** The heads of all requests. A connection has them in order; between connections it is that in which they opened. */
  requests(): string[];
  /** Sets the plan of all open and future connections. */
  set(plan: Plan): void;
  /** Cuts the open connections. */
  cutAll(): void;
  /** Resets the open connections. */
  resetAll(): void;
  /** Breaks what is open for good (`ProxiedConnection.blackHole`); new connections are not concerned. */
  blackHoleAll(direction?: DirectionName): void;
  /** Resets the black holes: the network is back, and the bytes sent meanwhile are lost. */
  breakBlackHoles(): void;
  /** Refuses new connections, like a host where nothing listens. Open connections stay. */
  refuse(): Promise<void>;
  /** Accepts connections again, on the same port. */
  accept(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A TCP proxy on loopback in this process, towards a port of 127.0.0.1: for HTTP, Redis and anything else. `plan`
 * decides about each new connection until `set` gives all of them one, and `onOpened` sees each. With `isRecorded`
 * false, for runs of hours, `connections` and `requests` stay empty. `edit` changes what the server says, chunk by chunk.
 */
export async function startNetProxy(
  targetPort: number,
  {
    plan = () => ({}),
    isRecorded = true,
    onOpened = () => undefined,
    edit = (chunk) => chunk,
  }: {
    plan?(index: number): Plan;
    readonly isRecorded?: boolean;
    onOpened?(connection: ProxiedConnection): void;
    edit?(chunk: Buffer): Buffer;
  } = {},
): Promise<NetProxy> {
  const connections = createInbox<ProxiedConnection>();
  const current = new Set<ProxiedConnection>();
  let count = 0;
  let planOf = plan;
  const onConnection = (client: Socket): void => {
    const index = count++;
    const connection = proxy(index, client, targetPort, planOf(index), edit);
    current.add(connection);
    connection.closed.then(() => current.delete(connection));
    if (isRecorded) connections.push(connection);
    onOpened(connection);
  };
  let server: Server | undefined = await listenOn(0, onConnection);
  const { port } = server.address() as AddressInfo;
  const open = (): ProxiedConnection[] => [...current].filter(({ isOpen }) => isOpen);

  const refuse = async (): Promise<void> => {
    // Its callback comes when the last connection is closed; the port is free before.
    server?.close();
    server = undefined;
  };
  const cutAll = (): void => {
    for (const connection of current) connection.cut();
  };
  const close = async (): Promise<void> => {
    await refuse();
    cutAll();
    await Promise.all([...current].map(({ closed }) => closed));
  };
  return {
    port,
    connections,
    open,
    get openCount() {
      return open().length;
    },
    urlOf(url) {
      const proxied = new URL(url);
      proxied.port = String(port);
      return proxied.href;
    },
    requests: () => connections.items.flatMap(({ requests }) => requests),
    set(changed) {
      planOf = () => changed;
      for (const connection of open()) connection.set(changed);
    },
    cutAll,
    resetAll() {
      for (const connection of open()) connection.reset();
    },
    blackHoleAll(direction) {
      for (const connection of open()) connection.blackHole(direction);
    },
    breakBlackHoles() {
      // Also those whose client has given up: its end did not pass.
      for (const connection of current) if (connection.isBlackHole) connection.reset();
    },
    refuse,
    async accept() {
      server ??= await listenOn(port, onConnection);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function listenOn(port: number, onConnection: (client: Socket) => void): Promise<Server> {
  // Half-open, so that bytes on their way to one side are not lost when the other side ends.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function proxy(
  index: number,
  client: Socket,
  targetPort: number,
  initial: Plan,
  edit: (chunk: Buffer) => Buffer,
): ProxiedConnection {
  const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const passed = { toServer: 0, toClient: 0 };
  const requests: string[] = [];
  const holes = new Set<DirectionName>();
  let plan = initial;
  let isCut = false;
  const closeOf = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const serverClosed = closeOf(upstream);
  const closed = Promise.all([serverClosed, closeOf(client)]).then(() => undefined);

  const cutBy = (how: 'end' | 'reset' | undefined): void => {
    isCut = true;
    for (const relay of Object.values(relays)) relay.stop();
    upstream.destroy();
    if (how === 'reset') reset(client);
    else if (holes.has('toClient')) client.destroy();
    // The end goes out behind the bytes that have passed; the client may still write, which nobody reads any more.
    else client.end(() => client.destroy());
  };
  const relay = (from: Socket, to: Socket, name: DirectionName) => {
    const onPassed = (bytes: number): void => {
      passed[name] += bytes;
    };
    const passing = createRelay({ from, to, onPassed, onCut: () => cutBy(plan.cutBy) }, plan[name] ?? {});
    from.on('data', (chunk: Buffer) => {
      if (isCut || holes.has(name)) return;
      if (name === 'toServer') requests.push(...headsIn(chunk));
      passing.take(name === 'toClient' ? edit(chunk) : chunk);
    });
    from.on('end', () => {
      if (holes.has(name)) return void from.end();
      if (!isCut) passing.end();
    });
    from.on('error', () => undefined); // `close` reports it
    from.on('close', () => {
      // A side that closes without an end was reset, so the other side is reset too.
      if (!holes.has(name) && !isCut && !from.readableEnded) reset(to);
    });
    return passing;
  };
  const relays = { toServer: relay(client, upstream, 'toServer'), toClient: relay(upstream, client, 'toClient') };

  return {
    index,
    clientPort: client.remotePort ?? 0,
    passed,
    requests,
    set(changed) {
      plan = changed;
      relays.toServer.set(changed.toServer ?? {});
      relays.toClient.set(changed.toClient ?? {});
    },
    cut: () => cutBy(plan.cutBy),
    reset: () => cutBy('reset'),
    blackHole(direction) {
      for (const name of direction === undefined ? (['toServer', 'toClient'] as const) : [direction]) {
        holes.add(name);
        relays[name].stop();
        (name === 'toServer' ? client : upstream).resume();
      }
    },
    serverClosed,
    closed,
    get isOpen() {
      return !client.destroyed;
    },
    get isBlackHole() {
      return holes.size > 0;
    },
  };
}

/** Resets a socket, after an end that is on its way: if Node.js resets during it, it never closes the socket. */
function reset(socket: Socket): void {
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isEnding) socket.once('finish', () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
}

/** The heads of the requests that begin with this chunk: clients write a head at once, and small ones. */
function headsIn(chunk: Buffer): string[] {
  const text = chunk.toString('latin1');
  return /^(?:GET|POST|DELETE) \S+ HTTP\/1\.1\r\n/.test(text) ? [text.split('\r\n\r\n', 1)[0] ?? ''] : [];
}
