import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readdirSync, statSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { detach } from '../../util/boundary.ts';
import type { LinkCredential } from './link-identity.ts';
import {
  handshakeMs,
  type LinkTransport,
  type LinkTransportHost,
  maxLinkConnections,
  Strangers,
} from './link-transport.ts';

const nonceBytes = 32;
const proofBytes = 32;

/** The name of a socket. A peer names no other file, whatever it publishes. */
const socketName = /^[0-9a-f]{16}\.sock$/;

/** A socket that nobody listens on was left behind by a killed instance, unless it is being made. */
const leftAfterMs = 60_000;

/** The most files that are looked at (P8). */
const maxFiles = 1_000;

/**
 * Connections between instances of one user on one host, over Unix sockets in a directory that only this user can open.
 * Nobody else can read or change what passes there, so the connections are not encrypted. Both sides still prove the key
 * of the connection: it belongs to two names, and so to two leases (docs/decisions/0095).
 */
export class LocalTransport implements LinkTransport {
  readonly scheme = 'unix';
  readonly #directory: string;
  readonly #host: LinkTransportHost;
  readonly #strangers = new Strangers();
  #server: Server | undefined;

  /** @param directory a directory that only this user can open */
  constructor(directory: string, host: LinkTransportHost) {
    this.#directory = directory;
    this.#host = host;
  }

  listen(): Promise<string> {
    const name = `${randomBytes(8).toString('hex')}.sock`;
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      if (this.#strangers.admit(socket)) detach('cluster', this.#accept(socket));
    });
    this.#server = server;
    server.maxConnections = maxLinkConnections;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(join(this.#directory, name), () => {
        server.removeListener('error', reject);
        server.on('error', (cause) => this.#host.onFault(cause));
        server.unref();
        this.#removeLeftSockets();
        resolve(name);
      });
    });
  }

  async connect(address: string, credential: LinkCredential): Promise<Socket | undefined> {
    if (!socketName.test(address)) return undefined;
    const socket = connect({ path: join(this.#directory, address) });
    socket.on('error', () => socket.destroy());
    return prove(socket, () => proveAsDialer(socket, credential));
  }

  dropStrangers(): void {
    this.#strangers.destroyAll();
  }

  close(): void {
    this.#server?.close(); // this removes the file, too
    this.#strangers.destroyAll();
  }

  async #accept(socket: Socket): Promise<void> {
    let peer: string | undefined;
    const proven = await prove(socket, async () => {
      peer = await this.#proveAsListener(socket);
      return peer !== undefined;
    });
    this.#strangers.release(socket);
    if (proven !== undefined && peer !== undefined) this.#host.onConnection(peer, proven);
  }

  /** Returns the name of the peer if it has proven its key. */
  async #proveAsListener(socket: Socket): Promise<string | undefined> {
    const [length = 0] = await readExactly(socket, 1);
    const identity = (await readExactly(socket, length)).toString('latin1');
    const theirNonce = await readExactly(socket, nonceBytes);
    const credential = this.#host.findCredential(identity);
    if (credential === undefined) return undefined;
    const nonce = randomBytes(nonceBytes);
    socket.write(Buffer.concat([nonce, proofOf(credential, 'listener', theirNonce, nonce)]));
    const proof = await readExactly(socket, proofBytes);
    return timingSafeEqual(proof, proofOf(credential, 'dialer', theirNonce, nonce)) ? credential.from : undefined;
  }

  /** Removes the sockets of instances that were killed. */
  #removeLeftSockets(): void {
    for (const name of readdirSync(this.#directory).slice(0, maxFiles)) {
      const path = join(this.#directory, name);
      if (
        !socketName.test(name) ||
        Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < leftAfterMs
      )
        continue;
      const socket = connect({ path });
      socket.once('connect', () => socket.destroy());
      socket.once('error', ({ code }: NodeJS.ErrnoException) => {
        if (code === 'ECONNREFUSED') tryUnlink(path);
      });
      socket.unref();
    }
  }
}

/** Runs a handshake within its time. Resolves with the socket if it succeeds; otherwise the socket is destroyed. */
async function prove(socket: Socket, handshake: () => Promise<boolean>): Promise<Socket | undefined> {
  const timer = setTimeout(() => socket.destroy(), handshakeMs).unref();
  const isProven = await handshake().catch(() => false);
  clearTimeout(timer);
  if (isProven && !socket.destroyed) return socket;
  socket.destroy();
  return undefined;
}

async function proveAsDialer(socket: Socket, credential: LinkCredential): Promise<boolean> {
  const identity = Buffer.from(credential.identity, 'latin1');
  const nonce = randomBytes(nonceBytes);
  socket.write(Buffer.concat([Buffer.from([identity.length]), identity, nonce]));
  const theirNonce = await readExactly(socket, nonceBytes);
  const proof = await readExactly(socket, proofBytes);
  if (!timingSafeEqual(proof, proofOf(credential, 'listener', nonce, theirNonce))) return false;
  socket.write(proofOf(credential, 'dialer', nonce, theirNonce));
  return true;
}

/** Proves the key for this one connection. Each side has its own text, so no side can send the other's proof back. */
const proofOf = ({ psk }: LinkCredential, side: string, dialerNonce: Buffer, listenerNonce: Buffer): Buffer =>
  createHmac('sha256', psk).update(`mcp-gangway local ${side}`).update(dialerNonce).update(listenerNonce).digest();

/** Reads so many bytes, and leaves later ones to the next reader. Rejects if the connection ends before. */
function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const read = (): void => {
      const found = bytes === 0 ? Buffer.alloc(0) : (socket.read(bytes) as Buffer | null);
      if (found === null && !socket.destroyed) return;
      socket.removeListener('readable', read);
      socket.removeListener('close', read);
      if (found?.length === bytes) resolve(found);
      else reject(new Error('The connection ended in its handshake.'));
    };
    socket.on('readable', read);
    socket.on('close', read);
    read();
  });
}

function tryUnlink(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Another instance has removed it.
  }
}
