import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Instances } from '../../store/instances.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { contain, detach } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { backoff } from '../../util/timing/backoff.ts';
import { DirectConnection } from './direct-connection.ts';
import { acceptIdentity, linkCredential } from './link-identity.ts';
import type { AcceptedCredential, LinkTransport, LinkTransportHost } from './link-transport.ts';
import { LocalTransport } from './local-transport.ts';
import { type LinkAddress, TlsTransport } from './tls-transport.ts';

/** The secrets that instances share. `StateKeys` implements it. */
export interface LinkSecrets {
  /** Returns all secrets, the one for new connections first. Rejects with `StoreUnavailable` while there is none. */
  all(): Promise<readonly Buffer[]>;
  /** As `all`, after reading the store again, at most once in a second. */
  reread(): Promise<readonly Buffer[]>;
}

/** The ways by which other instances can connect to this one. */
export interface LinkAddresses {
  /** A directory that only this user can open, for the sockets of its instances on this host. */
  readonly directory?: string | undefined;
  /** The address on the network; undefined if the operator has chosen none. */
  readonly network?: LinkAddress | undefined;
}

/** Options of `DirectLinks`. */
export interface DirectLinksOptions {
  readonly instances: Instances;
  readonly secrets: LinkSecrets;
  readonly addresses: LinkAddresses;
  /** A connection on which nothing arrives for this long is lost. */
  readonly silenceMs: number;
  /** The name of this instance now. */
  name(): string;
  /** See `DirectConnectionOptions.onMessages`. */
  onMessages(from: string, first: number, contents: readonly Buffer[]): boolean;
  /** A peer could not be reached at the addresses that it has published, in several attempts. */
  onUnreachable(peer: string, address: string): void;
  onFault(cause: unknown): void;
}

/** After this many failed attempts in a row, a peer is reported. The last one can be that of an instance that ended. */
const reportedFailures = 3;

/** What is known of the way to a peer. */
interface PeerDialing {
  isDialing: boolean;
  /** The failed attempts in a row. */
  failures: number;
  /** No attempt before this time, on the monotonic clock. */
  notBefore: number;
}

/** How many peers are remembered (P8). */
const maxPeers = 1_000;

/** How often a connection is checked within its `silenceMs`. */
const checksPerSilence = 4;

/**
 * How long the end of a connection may take when this instance stops. A busy peer that has not read the end by then
 * does not know the fate of its messages.
 */
const finishMs = 2_000;
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
  readonly #timers: readonly NodeJS.Timeout[];
  /** The preferred way first. */
  readonly #transports: readonly LinkTransport[];
  #secrets: readonly Buffer[] = [];
  #published: string | undefined;
  #isClosed = false;

  constructor(options: DirectLinksOptions) {
    this.#options = options;
    const { directory, network } = options.addresses;
    const host: LinkTransportHost = {
      findCredential: (identity) => this.#findCredential(identity),
      onConnection: (peer, socket) => {
        if (this.#isClosed) socket.destroy();
        else this.#open(peer, socket);
      },
      onFault: options.onFault,
    };
    this.#transports = [
      ...(directory === undefined ? [] : [new LocalTransport(directory, host)]),
      ...(network === undefined ? [] : [new TlsTransport(network, host)]),
    ];
    const check = (): void => {
      for (const connections of this.#connections.values()) for (const each of [...connections]) each.check();
    };
    this.#timers = [
      setInterval(() => contain('cluster', check), options.silenceMs / checksPerSilence).unref(),
      setInterval(() => this.publish(), publishMs).unref(),
    ];
  }

  /** Accepts connections. Rejects if an address cannot be listened on. */
  async listen(): Promise<void> {
    const published: string[] = [];
    for (const transport of this.#transports) published.push(`${transport.scheme}:${await transport.listen()}`);
    this.#published = published.join(' ');
    this.publish();
  }

  /** The addresses at which peers reach this instance, the preferred one first; undefined before `listen`. */
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
    for (const transport of this.#transports) transport.dropStrangers();
    this.#dialing.clear();
  }

  /** Ends all connections in order. Resolves when the peers have taken note, or soon after. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const transport of this.#transports) transport.close();
    for (const connections of this.#connections.values()) for (const each of [...connections]) each.finish();
    const deadline = performance.now() + finishMs;
    while (this.#connections.size > 0 && performance.now() < deadline) await delay(finishPauseMs);
    this.restart();
  }

  #findCredential(identity: string): AcceptedCredential | undefined {
    const { name, secrets } = this.#options;
    const credential = acceptIdentity(identity, name(), this.#secrets);
    if (credential !== undefined) return credential;
    // Another instance may use a secret that this one has not read yet.
    const reread = async (): Promise<void> => {
      this.#secrets = await secrets.reread();
    };
    detach('cluster', reread().catch(ignoreOutage));
    return undefined;
  }

  async #dial(peer: string, dialing: PeerDialing): Promise<void> {
    const name = this.#options.name();
    const published = await this.#options.instances.addressOf(peer).catch(ignoreOutage);
    const socket = published && (await this.#connect(published, name, peer).catch(ignoreOutage));
    dialing.isDialing = false;
    if (!socket) {
      dialing.notBefore = performance.now() + pauseAfter(dialing.failures);
      dialing.failures += 1;
      if (published && dialing.failures === reportedFailures) this.#options.onUnreachable(peer, published);
      return;
    }
    dialing.failures = 0;
    // A name that ended meanwhile has no connections.
    if (this.#isClosed || name !== this.#options.name() || this.#dialing.get(peer) !== dialing) socket.destroy();
    else this.#open(peer, socket);
  }

  /** Connects to a peer at its published addresses. Undefined if it cannot be reached, or does not prove the secret. */
  async #connect(published: string, from: string, to: string): Promise<Socket | undefined> {
    this.#secrets = await this.#options.secrets.all();
    const [secret] = this.#secrets;
    if (secret === undefined) return undefined;
    const credential = linkCredential(secret, { from, to });
    for (const address of published.split(' ')) {
      const transport = this.#transports.find(({ scheme }) => address.startsWith(`${scheme}:`));
      const socket = await transport?.connect(address.slice(transport.scheme.length + 1), credential);
      if (socket !== undefined) return socket;
    }
    return undefined;
  }

  #open(peer: string, socket: Socket): void {
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
