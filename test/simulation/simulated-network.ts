import { Duplex } from 'node:stream';
import type { LinkCredential } from '../../src/cluster/link/link-identity.ts';
import { handshakeMs, type LinkTransport, type LinkTransportHost } from '../../src/cluster/link/link-transport.ts';
import type { LinkAddress } from '../../src/cluster/link/tls-transport.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The delay of one way between two instances, in milliseconds. */
const fastestMs = 0.05;
const slowestMs = 2;

/** One end of a connection, as an instance uses it. */
class SimulatedSocket extends Duplex {
  peer: SimulatedSocket | undefined;
  readonly owner: string;
  readonly #network: SimulatedNetwork;
  #arrivesAtMs = 0;

  constructor(network: SimulatedNetwork, owner: string) {
    super({ allowHalfOpen: true });
    this.#network = network;
    this.owner = owner;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // Bytes are pushed when they arrive.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#toPeer((peer) => peer.push(chunk));
    done();
  }

  override _final(done: () => void): void {
    this.#toPeer((peer) => peer.push(null));
    done();
  }

  override _destroy(_: Error | null, done: (error: Error | null) => void): void {
    this.#toPeer((peer) => peer.destroy());
    this.#network.forget(this);
    done(null);
  }

  /** What one end sends arrives in order. What cannot pass is lost without notice: the connection is half-open. */
  #toPeer(act: (peer: SimulatedSocket) => void): void {
    const { peer } = this;
    if (peer === undefined || !this.#network.passes(this.owner, peer.owner, this)) return;
    const delayMs = this.#network.delay(this.owner, peer.owner);
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, this.#network.clock.nowMs + delayMs);
    this.#network.clock.after(this.#arrivesAtMs - this.#network.clock.nowMs, peer.owner, () => {
      if (!peer.destroyed) act(peer);
    });
  }
}

/** The network between the instances, for their direct connections. Each direction between two can fail by itself. */
export class SimulatedNetwork {
  readonly clock: VirtualClock;
  readonly #random: Random;
  readonly #listeners = new Map<string, LinkTransportHost>();
  readonly #sockets = new Set<SimulatedSocket>();
  /** The directions `from to` in which nothing passes, and those that are slow, with their delay. */
  readonly #blocked = new Set<string>();
  readonly #slow = new Map<string, number>();
  /** The ends that have lost bytes. Such a connection never delivers later ones. */
  readonly #broken = new Set<SimulatedSocket>();
  /** How many messages were written to direct connections. */
  writes = 0;

  constructor(clock: VirtualClock, random: Random) {
    this.clock = clock;
    this.#random = random;
  }

  listen(name: string, host: LinkTransportHost): void {
    this.#listeners.set(name, host);
  }

  close(name: string): void {
    this.#listeners.delete(name);
  }

  forget(socket: SimulatedSocket): void {
    this.#sockets.delete(socket);
    this.#broken.delete(socket);
  }

  /** True if what this end sends now arrives. */
  passes(from: string, to: string, socket: SimulatedSocket): boolean {
    this.writes += 1;
    if (this.#blocked.has(`${from} ${to}`)) this.#broken.add(socket);
    return !this.#broken.has(socket);
  }

  delay(from: string, to: string): number {
    return this.#random.between(fastestMs, slowestMs) + (this.#slow.get(`${from} ${to}`) ?? 0);
  }

  /** All connections between two instances break at once, for both. */
  cut(one: string, other: string): void {
    for (const socket of [...this.#sockets]) {
      const { owner, peer } = socket;
      if (!(owner === one && peer?.owner === other)) continue;
      for (const end of [socket, peer]) this.clock.after(0, end.owner, () => end.destroy());
    }
  }

  /** Nothing passes in one direction for a while. Neither end is told. */
  block(from: string, to: string, forMs: number): void {
    const way = `${from} ${to}`;
    this.#blocked.add(way);
    this.clock.after(forMs, 'world', () => this.#blocked.delete(way));
  }

  /** All takes longer in one direction for a while. Nothing is lost. */
  slow(from: string, to: string, byMs: number, forMs: number): void {
    const way = `${from} ${to}`;
    this.#slow.set(way, byMs);
    this.clock.after(forMs, 'world', () => this.#slow.delete(way));
  }

  /** A host is gone: its connections stay half-open, and nobody listens. */
  vanish(name: string): void {
    this.#listeners.delete(name);
    for (const socket of this.#sockets) if (socket.owner === name) this.#broken.add(socket);
  }

  /** The process of an instance is killed: its system closes the connections. */
  reset(name: string): void {
    this.#listeners.delete(name);
    for (const { owner, peer } of [...this.#sockets]) {
      if (owner === name && peer !== undefined) this.clock.after(0, peer.owner, () => peer.destroy());
    }
  }

  calm(): void {
    this.#blocked.clear();
    this.#slow.clear();
  }

  /** Connects two instances. Undefined if the peer cannot be reached, or does not know the secret. */
  connect(from: string, to: string, credential: LinkCredential): Promise<SimulatedSocket | undefined> {
    return new Promise((resolve) => {
      let isGivenUp = false;
      const answer = (socket: SimulatedSocket | undefined): void => {
        this.clock.after(this.delay(to, from), from, () => {
          if (isGivenUp) socket?.destroy();
          else resolve(socket);
        });
      };
      this.clock.after(handshakeMs, from, () => {
        isGivenUp = true;
        resolve(undefined);
      });
      if (this.#blocked.has(`${from} ${to}`) || this.#blocked.has(`${to} ${from}`)) return;
      if (!this.#listeners.has(to)) return answer(undefined);
      this.clock.after(this.delay(from, to), to, () => {
        if (isGivenUp) return;
        const known = this.#listeners.get(to)?.findCredential(credential.identity);
        if (known === undefined || !known.psk.equals(credential.psk)) return answer(undefined);
        const [here, there] = [new SimulatedSocket(this, from), new SimulatedSocket(this, to)];
        here.peer = there;
        there.peer = here;
        this.#sockets.add(here);
        this.#sockets.add(there);
        this.#listeners.get(to)?.onConnection(known.from, there as never);
        answer(here);
      });
    });
  }
}

/** The network of the simulation that runs now. */
export const network: { current: SimulatedNetwork | undefined } = { current: undefined };

/** Takes the place of the transport of `src/cluster/link/tls-transport.ts`. The address of an instance is its name. */
export class TlsTransport implements LinkTransport {
  readonly scheme = 'tcp';
  readonly #name: string;
  readonly #host: LinkTransportHost;

  constructor({ advertised }: LinkAddress, host: LinkTransportHost) {
    this.#name = advertised;
    this.#host = host;
  }

  async listen(): Promise<string> {
    network.current?.listen(this.#name, this.#host);
    return this.#name;
  }

  async connect(address: string, credential: LinkCredential) {
    return (await network.current?.connect(this.#name, address, credential)) as never;
  }

  dropStrangers(): void {
    // A handshake takes no time here.
  }

  close(): void {
    network.current?.close(this.#name);
  }
}
