import { randomBytes } from 'node:crypto';
import { readdirSync, statSync, unlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { accepted } from '../../../core/reply/reply.ts';
import { findNamedPair, nonceBytes, ownVersions, type PeerPair, type PeerRefusal, readProof } from './peer-proof.ts';
import type { PeerHost, PeerRequest, Ping } from './peer-request.ts';
import { HttpPeerReply, refusalOf } from './peer-response.ts';
import { socketName } from './ways.ts';

/** Where an instance accepts requests of others over the network, and the address that it publishes for them. */
export interface NetworkAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The host that other instances connect to, with or without a port. */
  readonly advertised: string;
}

/** The ways by which other instances reach this one. */
export interface PeerAddresses {
  /** A directory that only this user can open, for the sockets of its instances on this host. */
  readonly directory?: string | undefined;
  /** The address on the network; undefined if the operator has chosen none. */
  readonly network?: NetworkAddress | undefined;
}

/** Options of `PeerServer`. */
export interface PeerServerOptions {
  readonly addresses: PeerAddresses;
  /** The secrets that are known now. */
  secrets(): readonly Buffer[];
  onRefused(why: PeerRefusal): void;
  onFault(cause: unknown): void;
}

/** The header with the request, beside its body: JSON in ASCII. */
export const requestHeader = 'gangway-request';

/** What the header may have: the headers of the client's request, and the names of users. */
const maxHeaderBytes = 256 * 1024;

/** TLS 1.3 with a pre-shared key: both sides prove the key, and all is encrypted. No certificate is accepted. */
export const peerTls = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

/** The most bytes of the line by which a connection without TLS is proven. */
const maxProofBytes = 1024;

/** A handshake that takes longer is given up, at both ends. */
export const handshakeMs = 2_000;

/** A peer that has begun a request sends the rest of it within this time (P8). */
const requestMs = 60_000;

/** How many connections may be open that have not proven the secret (P8). A stranger can open them. */
const maxStrangers = 32;

/** A lost host is noticed by its silence, even where nothing has to be sent. */
const keepAliveMs = 5_000;

/** A socket that nobody listens on was left behind by a killed instance, unless it is being made. */
const leftAfterMs = 60_000;

/** The most files that are looked at (P8). */
const maxFiles = 1_000;

/** Accepts requests of other instances, and serves nothing to anybody else. */
export class PeerServer {
  readonly #options: PeerServerOptions;
  readonly #host: PeerHost;
  readonly #servers: Server[] = [];
  /** The connections that have proven who uses them. */
  readonly #pairs = new WeakMap<Socket, PeerPair>();
  readonly #replies = new Set<HttpPeerReply>();

  constructor(host: PeerHost, options: PeerServerOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Listens, and resolves with the addresses for other instances: the preferred one first. */
  async listen(): Promise<string> {
    const { directory, network } = this.#options.addresses;
    const addresses = [ownVersions];
    if (directory !== undefined) {
      const name = `${randomBytes(8).toString('hex')}.sock`;
      const server = createServer(serverOptions);
      const accept = server.listeners('connection');
      server.removeAllListeners('connection');
      server.on('connection', (socket: Socket) => {
        this.#challenge(socket, () => {
          for (const listener of accept) listener.call(server, socket);
        });
      });
      await this.#listen(server, { path: join(directory, name) });
      removeLeftSockets(directory);
      addresses.push(`unix:${name}`);
    }
    if (network !== undefined) {
      const { host, port } = network;
      const server = createTlsServer({
        ...serverOptions,
        ...peerTls,
        handshakeTimeout: handshakeMs,
        pskCallback: (socket, identity) => this.#keyFor(socket, identity),
      });
      this.#countStrangers(server);
      await this.#listen(server, { host, port });
      addresses.push(`tcp:${addressToPublish(network, server.address() as AddressInfo)}`);
    }
    return addresses.join(' ');
  }

  /** Shows the others that their requests are under way, and that the connections work. */
  beat(): void {
    for (const reply of this.#replies) reply.beat();
  }

  /** Accepts nothing more. Requests that are under way end first, or are cut off soon. */
  close(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeIdleConnections();
    }
  }

  /** Cuts all connections. */
  destroy(): void {
    for (const server of this.#servers) server.closeAllConnections();
  }

  #listen(server: Server, where: { readonly path: string } | { readonly host: string; readonly port: number }) {
    server.keepAliveTimeout = 0; // the asking side closes idle connections, so that no request meets a closed one
    server.on('request', (incoming, outgoing) => this.#serve(incoming, outgoing));
    server.on('clientError', (_, socket) => socket.destroy());
    this.#servers.push(server);
    return new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(where, () => {
        server.removeListener('error', reject);
        server.on('error', (cause) => this.#options.onFault(cause));
        server.unref();
        resolve();
      });
    });
  }

  /**
   * Serves a connection without TLS once the other side has proven the secret. The proof answers a nonce, so a recorded
   * one is worth nothing.
   */
  #challenge(socket: Socket, accept: () => void): void {
    const nonce = randomBytes(nonceBytes);
    // The other side gives up first, so it never loses a request that it sent with its proof.
    const timer = setTimeout(() => socket.destroy(), 2 * handshakeMs);
    let read = Buffer.alloc(0);
    const take = (part: Buffer): void => {
      read = Buffer.concat([read, part]);
      const end = read.indexOf(endOfProof);
      if (end < 0 && read.length <= maxProofBytes) return;
      socket.removeListener('data', take);
      const proven = end < 0 ? 'malformed' : readProof(read.toString('latin1', 0, end), nonce, this.#options.secrets());
      if (typeof proven === 'string') {
        this.#options.onRefused(proven);
        socket.resume(); // the timer closes a connection whose other side does not
        socket.end(refusalOf(proven));
        return;
      }
      clearTimeout(timer);
      socket.removeListener('error', ignore);
      this.#pairs.set(socket, proven);
      if (read.length > end + 1) socket.unshift(read.subarray(end + 1));
      accept();
    };
    socket.on('error', ignore);
    socket.on('close', () => clearTimeout(timer));
    socket.on('data', take);
    socket.write(nonce);
  }

  /** The key that a connecting peer has to prove in the TLS handshake. */
  #keyFor(socket: Socket, identity: string): Buffer | null {
    const pair = findNamedPair(identity, this.#options.secrets());
    if (typeof pair === 'string' || pair.to !== this.#host.name()) return null;
    this.#pairs.set(socket, pair);
    return pair.psk;
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { onRefused, onFault } = this.#options;
    const request = readRequest(incoming);
    const to = this.#pairs.get(incoming.socket)?.to;
    if (request === undefined || to === undefined) {
      onRefused('malformed');
      outgoing.destroy();
      return;
    }
    outgoing.sendDate = false;
    const reply = new HttpPeerReply(request, outgoing);
    this.#replies.add(reply);
    outgoing.once('close', () => this.#replies.delete(reply));
    const serve = (body: Buffer): void => {
      if (to !== this.#host.name()) reply.deny('moved');
      else if (request.kind === 'ping') reply.answer(accepted);
      else this.#host.serve(request, body, reply);
    };
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('error', ignore); // `close` of the response follows
    incoming.on('end', () => {
      try {
        serve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts));
      } catch (cause) {
        onFault(cause);
        outgoing.destroy();
      }
    });
  }

  /** Bounds the connections that have proven nothing yet, and counts those that do not prove the secret (P8). */
  #countStrangers(server: Server): void {
    const strangers = new Set<string>();
    const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
    server.on('connection', (socket: Socket) => {
      if (strangers.size >= maxStrangers) {
        socket.destroy();
        return;
      }
      const name = nameOf(socket);
      strangers.add(name);
      socket.once('close', () => strangers.delete(name));
      socket.setKeepAlive(true, keepAliveMs);
    });
    server.on('secureConnection', (socket: Socket) => {
      strangers.delete(nameOf(socket));
      socket.setNoDelay(true);
    });
    server.on('tlsClientError', (_, socket: Socket) => {
      this.#options.onRefused('stranger');
      socket.destroy();
    });
  }
}

const serverOptions = { maxHeaderSize: maxHeaderBytes, requestTimeout: requestMs, headersTimeout: 5 * handshakeMs };

const endOfProof = '\n';

const ignore = (): void => undefined;

/** The request of an instance; undefined if the header is none. */
function readRequest({ headers }: IncomingMessage): PeerRequest | Ping | undefined {
  const text = headers[requestHeader];
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

function addressToPublish({ advertised }: NetworkAddress, { port }: AddressInfo): string {
  return /:\d+$/.test(advertised) ? advertised : `${advertised}:${port}`;
}

/** Removes the sockets of instances that were killed. */
function removeLeftSockets(directory: string): void {
  for (const name of readdirSync(directory).slice(0, maxFiles)) {
    const path = join(directory, name);
    const modifiedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (!socketName.test(name) || Date.now() - modifiedMs < leftAfterMs) continue;
    const socket = connect({ path });
    socket.once('connect', () => socket.destroy());
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') tryUnlink(path);
    });
    socket.unref();
  }
}

function tryUnlink(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Another instance has removed it.
  }
}
