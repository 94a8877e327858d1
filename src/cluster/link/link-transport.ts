import type { Socket } from 'node:net';
import type { LinkCredential } from './link-identity.ts';

/** A way to connect to other instances. A connection that it hands out has proven its peer. */
export interface LinkTransport {
  /** Marks the published addresses of this transport. */
  readonly scheme: 'unix' | 'tcp';
  /** Accepts connections. Resolves with the address for peers, or rejects if it cannot listen. */
  listen(): Promise<string>;
  /** Connects to a peer. Undefined if the peer cannot be reached, or does not prove the key. Never rejects. */
  connect(address: string, credential: LinkCredential): Promise<Socket | undefined>;
  /** Drops the connections that have proven nothing yet: they may be for an earlier name of this instance. */
  dropStrangers(): void;
  /** Accepts nothing more, and drops the connections that have proven nothing. */
  close(): void;
}

/** What a transport asks of `DirectLinks`. */
export interface LinkTransportHost {
  /** The peer and the key for an identity that a connecting peer names; undefined if it is unknown. */
  findCredential(identity: string): AcceptedCredential | undefined;
  /** A peer has proven its key. */
  onConnection(peer: string, socket: Socket): void;
  onFault(cause: unknown): void;
}

/** The credential of a connecting peer. */
export interface AcceptedCredential extends LinkCredential {
  /** The name of the peer. */
  readonly from: string;
}

/** A handshake that takes longer is given up, at both ends. */
export const handshakeMs = 2_000;

/** How many connections may be open that have not proven the secret (P8). A stranger can open them. */
const maxStrangers = 32;

/** How many connections a transport accepts (P8). Two instances need at most two, while both dial at once. */
export const maxLinkConnections = 512;

/** The connections to a transport that have proven nothing yet. */
export class Strangers {
  readonly #sockets = new Set<Socket>();

  /** Counts a connection, or destroys it if there are too many. False if it was destroyed. */
  admit(socket: Socket): boolean {
    if (this.#sockets.size >= maxStrangers) {
      socket.destroy();
      return false;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    return true;
  }

  /** The connection has proven its peer. */
  release(socket: Socket | undefined): void {
    if (socket !== undefined) this.#sockets.delete(socket);
  }

  /** Finds the TCP connection under a TLS connection, which has the same peer. */
  under({ remoteAddress, remotePort }: Socket): Socket | undefined {
    for (const each of this.#sockets)
      if (each.remotePort === remotePort && each.remoteAddress === remoteAddress) return each;
    return undefined;
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
