import type { Socket } from 'node:net';
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import type { LinkCredential } from './link-identity.ts';
import {
  handshakeMs,
  type LinkTransport,
  type LinkTransportHost,
  maxLinkConnections,
  Strangers,
} from './link-transport.ts';

/** Where an instance accepts direct connections over the network, and the address that it publishes for them. */
export interface LinkAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The host that other instances connect to, with or without a port. */
  readonly advertised: string;
}

/**
 * TLS 1.3 with a pre-shared key: both sides prove the key, and the contents are encrypted. No certificate is accepted.
 */
const tlsOptions = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

/** Connections over a network. Others can read and change what passes there, so the connections are encrypted. */
export class TlsTransport implements LinkTransport {
  readonly scheme = 'tcp';
  readonly #address: LinkAddress;
  readonly #host: LinkTransportHost;
  readonly #strangers = new Strangers();
  readonly #peers = new WeakMap<TLSSocket, string>();
  #server: Server | undefined;

  constructor(address: LinkAddress, host: LinkTransportHost) {
    this.#address = address;
    this.#host = host;
  }

  listen(): Promise<string> {
    const { host, port } = this.#address;
    const server = createServer({
      ...tlsOptions,
      handshakeTimeout: handshakeMs,
      pskCallback: (socket, identity) => this.#findKey(socket, identity),
    });
    this.#server = server;
    server.maxConnections = maxLinkConnections;
    server.on('connection', (socket: Socket) => this.#strangers.admit(socket));
    server.on('secureConnection', (socket) => this.#accept(socket));
    server.on('tlsClientError', (_, socket) => socket.destroy());
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.removeListener('error', reject);
        server.on('error', (cause) => this.#host.onFault(cause));
        server.unref();
        resolve(this.#addressToPublish());
      });
    });
  }

  connect(address: string, credential: LinkCredential): Promise<Socket | undefined> {
    const at = address.lastIndexOf(':');
    if (at < 0) return Promise.resolve(undefined);
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
        else connected.setNoDelay(true);
        resolve(connected);
      };
      const timer = setTimeout(settle, handshakeMs, undefined);
      socket.on('error', () => settle(undefined));
      socket.once('secureConnect', () => settle(socket.isSessionReused() ? socket : undefined));
    });
  }

  dropStrangers(): void {
    this.#strangers.destroyAll();
  }

  close(): void {
    this.#server?.close();
    this.#strangers.destroyAll();
  }

  #addressToPublish(): string {
    const { advertised, port: wanted } = this.#address;
    if (/:\d+$/.test(advertised)) return advertised;
    const bound = this.#server?.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : wanted;
    return `${advertised}:${port}`;
  }

  #findKey(socket: TLSSocket, identity: string): Buffer | null {
    const credential = this.#host.findCredential(identity);
    if (credential === undefined) return null;
    this.#peers.set(socket, credential.from);
    return credential.psk;
  }

  #accept(socket: TLSSocket): void {
    const peer = this.#peers.get(socket);
    // Without a session from the key, nothing was proven.
    if (peer === undefined || !socket.isSessionReused()) {
      socket.destroy();
      return;
    }
    this.#strangers.release(this.#strangers.under(socket));
    socket.setNoDelay(true);
    this.#host.onConnection(peer, socket);
  }
}
