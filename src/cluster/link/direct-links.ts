import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import type { Instances } from '../../store/instances.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { contain, detach } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { backoff } from '../../util/timing/backoff.ts';
import { DirectConnection } from './direct-connection.ts';
import { acceptIdentity, linkCredential } from './link-identity.ts';

/** The secrets that instances share. `StateKeys` implements it. */
export interface LinkSecrets {
  /** Returns all secrets, the one for new connections first. Rejects with `StoreUnavailable` while there is none. */
  all(): Promise<readonly Buffer[]>;
  /** As `all`, after reading the store again, at most once in a second. */
  reread(): Promise<readonly Buffer[]>;
}

/** Where an instance accepts direct connections, and the address that it publishes for them. */
export interface LinkAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The host that other instances connect to, with or without a port. */
  readonly advertised: string;
}

/** Options of `DirectLinks`. */
export interface DirectLinksOptions {
  readonly instances: Instances;
  readonly secrets: LinkSecrets;
  readonly address: LinkAddress;
  /** A connection on which nothing arrives for this long is lost. */
  readonly silenceMs: number;
  /** The name of this instance now. */
  name(): string;
  /** See `DirectConnectionOptions.onMessages`. */
  onMessages(from: string, first: number, contents: readonly Buffer[]): boolean;
  onFault(cause: unknown): void;
}

/** What is known of the way to a peer. */
interface PeerDialing {
  isDialing: boolean;
  /** The failed attempts in a row. */
  failures: number;
  /** No attempt before this time, on the monotonic clock. */
  notBefore: number;
}

/**
 * TLS 1.3 with a pre-shared key: both sides prove the key, and the contents are encrypted. No certificate is accepted.
 */
const tlsOptions = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

/** A handshake that takes longer is given up, at both ends. */
const handshakeMs = 2_000;

/** How many connections may be open that have not proven the secret (P8). A stranger can open them. */
const maxStrangers = 32;

/** How many connections may be open (P8). Two instances need at most two, while both dial at once. */
const maxConnections = 512;

/** How many peers are remembered (P8). */
const maxPeers = 1_000;

/** How often a connection is checked within its `silenceMs`. */
const checksPerSilence = 4;

/** How long the end of a connection may take when this instance stops. */
const finishMs = 500;
const finishPauseMs = 5;

/** How often the address is published. The store keeps it for two minutes or more. */
const publishMs = 30_000;

const pauseAfter = backoff({ firstMs: 250, maxMs: 10_000, spread: [0.5, 1] });

/**
 * The direct connections of this instance to others. An instance that has messages for a peer connects to the address
 * that the peer has published. Until then, and whenever a connection fails, messages go through the store.
 */
export class DirectLinks {
  readonly #options: DirectLinksOptions;
  readonly #connections = new Map<string, Set<DirectConnection>>();
  readonly #dialing = new BoundedMap<string, PeerDialing>(maxPeers);
  readonly #strangers = new Set<Socket>();
  readonly #peers = new WeakMap<TLSSocket, string>();
  readonly #timers: readonly NodeJS.Timeout[];
  #server: Server | undefined;
  #secrets: readonly Buffer[] = [];
  #published: string | undefined;
  #isClosed = false;

  constructor(options: DirectLinksOptions) {
    this.#options = options;
    const check = (): void => {
      for (const connections of this.#connections.values()) for (const each of [...connections]) each.check();
    };
    this.#timers = [
      setInterval(() => contain('cluster', check), options.silenceMs / checksPerSilence).unref(),
      setInterval(() => this.publish(), publishMs).unref(),
    ];
  }

  /** Accepts connections. Rejects if the address cannot be listened on. */
  listen(): Promise<void> {
    const { host, port } = this.#options.address;
    const server = createServer({
      ...tlsOptions,
      handshakeTimeout: handshakeMs,
      pskCallback: (socket, identity) => this.#findKey(socket, identity),
    });
    this.#server = server;
    server.maxConnections = maxConnections;
    server.on('connection', (socket: Socket) => this.#admitStranger(socket));
    server.on('secureConnection', (socket) => this.#accept(socket));
    server.on('tlsClientError', (_, socket) => socket.destroy());
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.removeListener('error', reject);
        server.on('error', (cause) => this.#options.onFault(cause));
        server.unref();
        this.#published = this.#addressToPublish();
        this.publish();
        resolve();
      });
    });
  }

  /** The address at which peers reach this instance; undefined before `listen`. */
  get address(): string | undefined {
    return this.#published;
  }

  /** Publishes the address under the name of now, and reads the secrets again. */
  publish(): void {
    const { instances, name, secrets } = this.#options;
    const published = this.#published;
    if (published === undefined || this.#isClosed) return;
    const work = async (): Promise<void> => {
      this.#secrets = await secrets.all();
      await instances.publishAddress(name(), published);
    };
    detach('cluster', work().catch(ignoreOutage)); // the next attempt is soon
  }

  /** The open connection to a peer. If there is none, one is made meanwhile, unless an attempt has failed recently. */
  to(peer: string): DirectConnection | undefined {
    if (this.#isClosed || peer === this.#options.name()) return undefined;
    for (const connection of this.#connections.get(peer) ?? []) if (connection.isOpen) return connection;
    const dialing = this.#dialing.get(peer) ?? { isDialing: false, failures: 0, notBefore: 0 };
    if (!dialing.isDialing && performance.now() >= dialing.notBefore) {
      this.#dialing.set(peer, dialing);
      dialing.isDialing = true;
      detach('cluster', this.#dial(peer, dialing));
    }
    return undefined;
  }

  /** True if a connection to this peer is open. */
  reaches(peer: string): boolean {
    return [...(this.#connections.get(peer) ?? [])].some(({ isOpen }) => isOpen);
  }

  /** The peers with an open connection. */
  get reached(): readonly string[] {
    return [...this.#connections.keys()].filter((peer) => this.reaches(peer));
  }

  /** Forgets a dead peer. */
  forget(peer: string): void {
    this.#dialing.delete(peer);
    for (const connection of [...(this.#connections.get(peer) ?? [])]) connection.close();
  }

  /** This instance has another name, or stops. Connections belong to the old name. */
  restart(): void {
    for (const peer of [...this.#connections.keys()]) this.forget(peer);
    this.#dialing.clear();
  }

  /** Ends all connections in order. Resolves when the peers have taken note, or soon after. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#server?.close();
    for (const socket of this.#strangers) socket.destroy();
    for (const connections of this.#connections.values()) for (const each of [...connections]) each.finish();
    const deadline = performance.now() + finishMs;
    while (this.#connections.size > 0 && performance.now() < deadline) await delay(finishPauseMs);
    this.restart();
  }

  #addressToPublish(): string {
    const { advertised } = this.#options.address;
    if (/:\d+$/.test(advertised)) return advertised;
    const bound = this.#server?.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : this.#options.address.port;
    return `${advertised}:${port}`;
  }

  /** A connection that has proven nothing yet. The handshake has a time limit, so its place becomes free again. */
  #admitStranger(socket: Socket): void {
    if (this.#isClosed || this.#strangers.size >= maxStrangers) return refuse(socket);
    this.#strangers.add(socket);
    socket.once('close', () => this.#strangers.delete(socket));
  }

  #findKey(socket: TLSSocket, identity: string): Buffer | null {
    const { name, secrets } = this.#options;
    const credential = acceptIdentity(identity, name(), this.#secrets);
    if (credential === undefined) {
      // Another instance may use a secret that this one has not read yet.
      const reread = async (): Promise<void> => {
        this.#secrets = await secrets.reread();
      };
      detach('cluster', reread().catch(ignoreOutage));
      return null;
    }
    this.#peers.set(socket, credential.from);
    return credential.psk;
  }

  #accept(socket: TLSSocket): void {
    const peer = this.#peers.get(socket);
    // Without a session from the key, nothing was proven.
    if (peer === undefined || !socket.isSessionReused() || this.#isClosed) return refuse(socket);
    for (const stranger of this.#strangers)
      if (stranger.remotePort === socket.remotePort && stranger.remoteAddress === socket.remoteAddress)
        this.#strangers.delete(stranger);
    this.#open(peer, socket);
  }

  async #dial(peer: string, dialing: PeerDialing): Promise<void> {
    const name = this.#options.name();
    const socket = await this.#connect(name, peer).catch(ignoreOutage);
    dialing.isDialing = false;
    if (socket === undefined) {
      dialing.notBefore = performance.now() + pauseAfter(dialing.failures);
      dialing.failures += 1;
      return;
    }
    dialing.failures = 0;
    // A name that ended meanwhile has no connections.
    if (this.#isClosed || name !== this.#options.name() || this.#dialing.get(peer) !== dialing) socket.destroy();
    else this.#open(peer, socket);
  }

  /** Connects to a peer. Undefined if it has no address, cannot be reached, or does not prove the secret. */
  async #connect(from: string, to: string): Promise<TLSSocket | undefined> {
    const { instances, secrets } = this.#options;
    const [address, known] = await Promise.all([instances.addressOf(to), secrets.all()]);
    this.#secrets = known;
    const [secret] = known;
    const at = address?.lastIndexOf(':') ?? -1;
    if (address === undefined || secret === undefined || at < 0) return undefined;
    const credential = linkCredential(secret, { from, to });
    return new Promise((resolve) => {
      const socket = connect({
        ...tlsOptions,
        host: address.slice(0, at).replace(/^\[|\]$/g, ''),
        port: Number(address.slice(at + 1)),
        pskCallback: () => credential,
        ca: [],
        checkServerIdentity: () => new Error('A peer proves the secret, not a certificate.'),
      });
      const settle = (connected: TLSSocket | undefined): void => {
        clearTimeout(timer);
        if (connected === undefined) socket.destroy();
        resolve(connected);
      };
      const timer = setTimeout(settle, handshakeMs, undefined);
      socket.on('error', () => settle(undefined));
      socket.once('secureConnect', () => settle(socket.isSessionReused() ? socket : undefined));
    });
  }

  #open(peer: string, socket: TLSSocket): void {
    socket.setNoDelay(true);
    const { onMessages, onFault } = this.#options;
    const connections = this.#connections.get(peer) ?? new Set();
    this.#connections.set(peer, connections);
    const connection: DirectConnection = new DirectConnection(socket, {
      peer,
      onMessages: (first, contents) => onMessages(peer, first, contents),
      onClosed: () => {
        connections.delete(connection);
        if (connections.size === 0 && this.#connections.get(peer) === connections) this.#connections.delete(peer);
      },
      onFault,
    });
    connections.add(connection);
    socket.unref();
  }
}

function ignoreOutage(cause: unknown): undefined {
  if (!(cause instanceof StoreUnavailable)) throw cause;
}

function refuse(socket: Socket): void {
  socket.destroy();
}
