import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Client } from 'undici';
import type { StateKeys } from '../../../core/keys/state-keys.ts';
import type { PeerStates } from '../../../core/registry/session-cluster.ts';
import type { Instances } from '../../../core/store/instances.ts';
import type { StoreEvent } from '../../../core/store/store-events.ts';
import { ifUnavailable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { loadLibrary } from '../../../core/util/load-library.ts';
import type { Emit } from '../../../core/util/telemetry/emit.ts';
import { answerNonce, commonVersion, nonceBytes, ownVersions, peerCredential } from './peer-proof.ts';
import type { PeerCall, PeerHost, PeerListener, PeerRequest, PeerTransport, Ping } from './peer-request.ts';
import { ResponseReader } from './peer-response.ts';
import { handshakeMs, type PeerAddresses, PeerServer, peerTls, requestHeader } from './peer-server.ts';
import { type Way, waysOf } from './ways.ts';

/** Options of `HttpPeers`. */
export interface HttpPeersOptions {
  readonly instances: Instances;
  /** The secrets that instances share. */
  readonly secrets: Pick<StateKeys, 'all' | 'reread'>;
  readonly addresses: PeerAddresses;
  readonly leaseMs: number;
  readonly emit: Emit<StoreEvent>;
}

/** How often other instances are asked whether they answer, within a lease. A late answer counts, too. */
const pingsPerLease = 6;

/** So much of the time between two checks counts as silence at most: this instance may have stood still. */
const countedIntervals = 2;

/** An instance that has not answered for this part of a lease gets no new requests. */
const silencesPerLease = 2;

/** How many connections to one instance are kept for later requests (P8). Each request that is under way has one. */
const maxKeptConnections = 1_000;

/** An idle connection is closed after this time, always by the asking side. */
const idleMs = 30_000;

/** The most that the head of an answer may have: the challenge of a server, or headers of an extension. */
const maxHeadBytes = 256 * 1024;

/** How long open requests of others may take when this instance stops. */
const finishMs = 2_000;

/** How often the address is published. The store keeps it for two minutes or more. */
const publishMs = 30_000;

const ping: Ping = { kind: 'ping', request: { accepts: { json: true, sse: false } } };

/** Why a peer does not answer, for the operator. */
const otherVersion = (address: string): string =>
  `It runs an incompatible version of the gateway (${address.split(' ')[0]}, and this one is ${ownVersions}).`;
const silent = 'It does not answer at its address.';

/** What an instance says about all requests of this one. */
const helpForRefusal: ReadonlyMap<string, string> = new Map([
  ['version', 'It runs an incompatible version of the gateway.'],
  ['stranger', 'It does not know the secret of this instance. Use the same cluster.stateKeys for all instances.'],
]);

/** The way to one other instance. */
class Peer {
  readonly name: string;
  readonly address: string;
  /** The connections that no request uses: the last used one is the last. */
  readonly kept: Client[] = [];
  readonly calls = new Set<ResponseReader>();
  /** The time since it was last heard, in milliseconds. */
  silentMs = 0;
  pings = 0;
  /** It answers under another name: it had lost its lease, and has a new one. */
  isRenamed = false;
  /** Set once the operator was told that it cannot be reached. */
  isReported = false;
  /** Why it refuses all requests; undefined if it does not. */
  refusal: string | undefined;
  isClosed = false;

  constructor(name: string, address: string) {
    this.name = name;
    this.address = address;
    if (commonVersion(address) === undefined) this.refusal = otherVersion(address);
  }

  /** Keeps the connection of a request that is over. It may be broken, and then connects again for the next request. */
  keep(client: Client): void {
    if (!this.isClosed && this.kept.length < maxKeptConnections) this.kept.push(client);
    else detach('cluster', client.destroy());
  }

  close(): void {
    this.isClosed = true;
    for (const call of [...this.calls]) call.fail(call.isSent ? 'lost' : 'unsent');
    for (const client of this.kept.splice(0)) detach('cluster', client.destroy());
  }
}

/** Requests between instances by HTTP: over Unix sockets on one host, and over TLS with the shared key between hosts. */
export class HttpPeers implements PeerTransport {
  readonly #options: HttpPeersOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #timers: readonly NodeJS.Timeout[];
  #host: PeerHost | undefined;
  #server: PeerServer | undefined;
  #address: string | undefined;
  #secrets: readonly Buffer[] = [];
  #isChecking = false;
  #checkedAt = performance.now();
  #isClosed = false;

  constructor(options: HttpPeersOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => {
        this.#server?.beat(); // whether the store answers or not
        detach('cluster', this.#check());
      }, options.leaseMs / pingsPerLease).unref(),
      setInterval(() => this.publish(), publishMs).unref(),
    ];
  }

  attach(host: PeerHost): void {
    this.#host = host;
    const { addresses, emit } = this.#options;
    this.#server = new PeerServer(host, {
      addresses,
      secrets: () => this.#secrets,
      onRefused: (reason) => {
        if (reason === 'stranger') this.#rereadSecrets();
        emit({ type: 'peer-refused', reason });
      },
      onFault: (cause) => emit({ type: 'store-failed', cause }),
    });
  }

  async listen(): Promise<void> {
    this.#address = await this.#server?.listen();
    this.publish();
  }

  publish(): void {
    const { instances } = this.#options;
    const address = this.#address;
    if (address === undefined || this.#isClosed) return;
    const work = async (): Promise<void> => {
      this.#secrets = await this.#options.secrets.all();
      await instances.publishAddress(this.#name, address);
      await this.#check();
    };
    detach(
      'cluster',
      work().catch((cause) => this.#noteOutage(cause)),
    ); // the next attempt is soon
  }

  /** What Redis refuses is told: without an address, the others do not find this instance. */
  #noteOutage(cause: unknown): void {
    if (cause instanceof StoreUnavailable && cause.reason === 'unreachable') return;
    this.#options.emit({ type: 'store-failed', cause });
  }

  get states(): PeerStates {
    const peers = [...this.#peers.values()];
    const unreachable = peers.filter((peer) => !this.#answers(peer));
    return {
      reachable: peers.length - unreachable.length,
      unreachable: unreachable.map(({ name, address }) => ({ instance: name, address })),
    };
  }

  get names(): readonly string[] {
    return [...this.#peers.values()].filter(({ refusal }) => refusal === undefined).map(({ name }) => name);
  }

  ask(to: string, request: PeerRequest, body: Buffer | undefined, listener: PeerListener): PeerCall {
    const peer = this.#peers.get(to);
    const reader: ResponseReader = new ResponseReader(listener, (why) => peer && this.#noteRefusal(peer, why));
    if (peer !== undefined) this.#send(peer, request, body, reader);
    else
      detach(
        'cluster',
        this.#meet(to)
          .catch(ifUnavailable(undefined))
          .then((found) => {
            if (reader.isOver) return;
            if (found === undefined) reader.fail('unsent');
            else this.#send(found, request, body, reader);
          }),
      );
    return reader;
  }

  isRenamed(instance: string): boolean {
    return this.#peers.get(instance)?.isRenamed === true;
  }

  forget(instance: string): void {
    this.#peers.get(instance)?.close();
    this.#peers.delete(instance);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#server?.close();
    for (const name of [...this.#peers.keys()]) this.forget(name);
    setTimeout(() => this.#server?.destroy(), finishMs).unref();
  }

  get #name(): string {
    return this.#host?.name() ?? '';
  }

  #answers({ silentMs, refusal }: Peer): boolean {
    return refusal === undefined && silentMs < this.#options.leaseMs / silencesPerLease;
  }

  /** Finds an instance that this one has not heard of. */
  async #meet(name: string): Promise<Peer | undefined> {
    if (this.#secrets.length === 0) this.#secrets = await this.#options.secrets.all();
    const address = await this.#options.instances.addressOf(name);
    return address === undefined || this.#isClosed ? undefined : this.#know(name, address);
  }

  #know(name: string, address: string): Peer {
    const known = this.#peers.get(name);
    if (known?.address === address) return known;
    known?.close();
    const peer = new Peer(name, address);
    this.#peers.set(name, peer);
    return peer;
  }

  #send(peer: Peer, request: PeerRequest | Ping, body: Buffer | undefined, reader: ResponseReader): void {
    // Nothing goes to an instance that is silent: what is sent there may be lost, and so would have an unknown outcome.
    const mayAnswer = request.kind === 'ping' || this.#answers(peer);
    if (this.#secrets.length === 0 || !mayAnswer) {
      queueMicrotask(() => reader.fail(peer.refusal === undefined ? 'unsent' : 'refused'));
      return;
    }
    const client = peer.kept.pop() ?? this.#createClient(peer);
    peer.calls.add(reader);
    reader.onHeard = () => {
      peer.silentMs = 0;
    };
    reader.onOver = () => {
      peer.calls.delete(reader);
      peer.keep(client);
    };
    const headers = { [requestHeader]: toAscii(JSON.stringify(request)) };
    client.dispatch({ path: '/', method: 'POST', headers, body: body ?? null }, reader);
  }

  #createClient({ name, address }: Peer): Client {
    const connect = (_: unknown, callback: ConnectCallback): void => this.#connect(name, address, callback);
    return new (loadLibrary('undici').Client)('http://instance', { ...clientOptions, connect });
  }

  /** Connects to the first of the published addresses that can be reached and proves the key. */
  #connect(name: string, published: string, callback: ConnectCallback): void {
    const [secret] = this.#secrets;
    if (secret === undefined) return callback(new Error('The secret of the instances is not known yet.'), null);
    const credential = peerCredential(secret, { from: this.#name, to: name, version: commonVersion(published) ?? 0 });
    const ways = waysOf(published, this.#options.addresses.directory);
    const open = (way: Way): Socket =>
      'path' in way
        ? connectPlain(way)
        : connectTls({
            ...peerTls,
            ...way,
            pskCallback: () => credential,
            ca: [],
            checkServerIdentity: () => new Error('A peer proves the secret, not a certificate.'),
          });
    const tryNext = (cause: Error): void => {
      const way = ways.shift();
      if (way === undefined) return callback(cause, null);
      const socket = open(way);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        socket.removeListener('error', fail);
        socket.on('error', () => undefined);
        socket.destroy();
        tryNext(error);
      };
      const timer = setTimeout(() => fail(new Error('The handshake took too long.')), handshakeMs);
      const succeed = (): void => {
        clearTimeout(timer);
        socket.removeListener('error', fail);
        socket.removeListener('end', failAtEnd);
        socket.setNoDelay(true);
        socket.unref();
        callback(null, socket);
      };
      const failAtEnd = (): void => fail(new Error('The instance has closed the connection.'));
      const prove = (): void => {
        const nonce: Buffer | null = socket.read(nonceBytes);
        if (nonce === null) return;
        socket.removeListener('readable', prove);
        // An instance that has ended meanwhile makes the write fail before undici could hear of that: then `fail` does.
        socket.write(answerNonce(credential, nonce), (error) => {
          if (!error) succeed();
        });
      };
      socket.once('error', fail);
      socket.once('end', failAtEnd);
      if ('path' in way) socket.on('readable', prove);
      else socket.once('secureConnect', succeed);
    };
    tryNext(new Error('The instance has published no address that this one can use.'));
  }

  /** Learns which instances live, and asks each of them whether it answers. */
  async #check(): Promise<void> {
    if (this.#isClosed || this.#address === undefined || this.#isChecking) return;
    this.#isChecking = true;
    const now = performance.now();
    const countedMs = Math.min(now - this.#checkedAt, (countedIntervals * this.#options.leaseMs) / pingsPerLease);
    this.#checkedAt = now;
    for (const peer of this.#peers.values()) {
      peer.silentMs += countedMs;
      for (const call of peer.calls) call.countSilence(countedMs);
    }
    const known = new Set(this.#peers.values());
    const found = await this.#options.instances.addresses().catch(ifUnavailable(undefined));
    this.#isChecking = false;
    if (this.#isClosed) return;
    for (const [name, address] of found ?? []) if (name !== this.#name) this.#know(name, address);
    for (const peer of [...this.#peers.values()]) {
      // It may have published its address after the question. What it still answers counts until its death is certain.
      const isUnknown = found !== undefined && !found.has(peer.name) && known.has(peer);
      if (isUnknown && peer.calls.size === 0) this.forget(peer.name);
      else this.#ping(peer);
    }
  }

  #ping(peer: Peer): void {
    const { leaseMs, emit } = this.#options;
    const names = { instance: peer.name, address: peer.address };
    if (!this.#answers(peer) && !peer.isReported) {
      peer.isReported = true;
      emit({ type: 'peer-unreachable', ...names, detail: peer.refusal ?? silent });
    }
    // An instance that is silent for a lease is lost, or its answers do not arrive. So is a single connection.
    for (const call of [...peer.calls])
      if (call.isSent && Math.max(peer.silentMs, call.silentMs) >= leaseMs) call.fail('lost');
    if (peer.pings >= pingsPerLease) return;
    peer.pings += 1;
    const settle = (isHeard: boolean): void => {
      clearTimeout(timer);
      peer.pings -= 1;
      if (!isHeard || peer.refusal !== undefined || !peer.isReported) return;
      peer.isReported = false;
      emit({ type: 'peer-reachable', ...names });
    };
    const reader: ResponseReader = new ResponseReader(
      {
        answered: () => {
          peer.refusal = undefined;
          settle(true);
        },
        denied: () => {
          peer.isRenamed = true;
          settle(true);
        },
        opened: () => undefined,
        received: () => true,
        ended: () => undefined,
        failed: () => settle(false),
      },
      (why) => this.#noteRefusal(peer, why),
    );
    const timer = setTimeout(() => reader.fail('lost'), leaseMs).unref();
    this.#send(peer, ping, undefined, reader);
  }

  #noteRefusal(peer: Peer, why: string): void {
    const help = helpForRefusal.get(why);
    if (help === undefined) return;
    peer.refusal = help;
    if (why === 'stranger') this.#rereadSecrets();
  }

  /** Another instance may use a secret that this one has not read yet. */
  #rereadSecrets(): void {
    const reread = async (): Promise<void> => {
      this.#secrets = await this.#options.secrets.reread();
    };
    detach('cluster', reread().catch(ifUnavailable(undefined)));
  }
}

type ConnectCallback = (...args: [error: Error, socket: null] | [error: null, socket: Socket]) => void;

const clientOptions = {
  pipelining: 1,
  keepAliveTimeout: idleMs,
  keepAliveMaxTimeout: idleMs,
  maxHeaderSize: maxHeadBytes,
  // The owner's session limits the time of a call, and pings notice an instance that is silent.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

/** Names of users and headers of clients may have any character, and a header of HTTP may not. */
const toAscii = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
