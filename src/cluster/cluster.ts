import { setTimeout as delay } from 'node:timers/promises';
import { assumedRevision, hasPrimingEvent } from '../protocol/revisions.ts';
import type { Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import type { Session } from '../session/session.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import type { ResumeOutcome, StreamObserver } from '../session/session-observer.ts';
import type { MailboxBacklog } from '../store/instances.ts';
import type { Store } from '../store/store.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import type { ClientOperation } from './forward/client-operation.ts';
import { ForwardedRequest } from './forward/forwarded-request.ts';
import { OwnerEndpoint } from './forward/owner-endpoint.ts';
import { replay } from './forward/replay.ts';
import { retryLookup } from './forward/retry-lookup.ts';
import { PeerLink, type PeerMessageAddress } from './link/peer-link.ts';
import type { MessageToIngress, MessageToOwner } from './link/peer-messages.ts';
import { Directory, type DirectoryOptions } from './ownership/directory.ts';
import { OwnershipGuard } from './ownership/guard.ts';
import { Lease } from './ownership/lease.ts';
import { isAlive } from './ownership/liveness.ts';
import { registerAll } from './ownership/registration.ts';

/** Times and sizes of a cluster; `docs/reference/configuration.md` explains each. */
export interface ClusterLimits {
  readonly leaseMs: number;
  readonly leaseRenewMs: number;
  readonly leaseMarginMs: number;
  readonly storeWaitMs: number;
  readonly mailboxMaxBytes: number;
  readonly retryMs: number;
  readonly slowReaderMs: number;
}

/** What a cluster needs of its instance. */
export interface ClusterOptions
  extends Pick<DirectoryOptions, 'find' | 'formerServer' | 'mayAdopt' | 'endingHere' | 'onTakeoverLimit'> {
  /** True while a session of this key is being ended here. */
  isEnding(key: string): boolean;
  readonly store: Store;
  readonly limits: ClusterLimits;
  /** Makes a session that was taken over one of this instance. */
  adopt(key: string, server: Server, adoption: Adoption): Session;
  /** The sessions of this instance. */
  sessions(): Iterable<Session>;
  /** Who is told of streams of a server's clients that were sent from the log, without their owner. */
  streamsOf?(server: string): StreamObserver | undefined;
  /** The store answers, for the first time or again. */
  onTerm(): void;
  onFailed(cause: unknown): void;
}

/** How often it is looked whether the instances live that somebody here waits for, or that wait. */
const watchMs = 500;

/** So often it is looked whether the instances live that were written to at some time: a dead one is forgotten. */
const forgetMs = 60_000;

/** What a lost owner or store keeps waiting has an end within a lease and this time (P3). */
const noticeMs = 2_000;

/** An instance that has not heard of the store for a lease and this time sends its clients away: see `Exchange.strand`. */
const strandedMs = 1_000;

/** At most this counts of the time between two looks: a process that was frozen could not have heard of the store then. */
const heardMs = 1_000;

/** A GET gets its head after this time, whoever will answer it. */
const earlyStreamMs = 1_000;

/** The pause between looks whether the instance is ready, or nobody waits any more. */
const pauseMs = 50;

/** The instances that share a store, as one of them sees it: any instance serves any session (docs/decisions/0015). */
export class Cluster {
  readonly guard: OwnershipGuard;
  readonly lease: Lease;
  readonly directory: Directory;
  /** What is in the mailbox of this instance and was not received. */
  readonly mailboxBacklog = (): Promise<MailboxBacklog> => this.#options.store.instances.backlog(this.lease.name);
  readonly #options: ClusterOptions;
  readonly #desk: OwnerEndpoint;
  readonly #mail: PeerLink;
  readonly #exchanges = new Map<number, ForwardedRequest>();
  readonly #watch: NodeJS.Timeout;
  /** Lost instances whose letters are being taken back. */
  readonly #burying = new Set<string>();
  /** The store was away since the start: what it lacks may be what it lost. */
  #hadBreak = false;
  #lookedAt = performance.now();
  /** For how long the store could have been heard of, and was not. */
  #unheardMs = 0;
  #forgotAt = performance.now();
  #isClosed = false;
  #lastExchange = 0;

  constructor(options: ClusterOptions) {
    const { store, limits, find, formerServer, mayAdopt, endingHere, onTakeoverLimit, onFailed } = options;
    const { leaseMs, leaseRenewMs: renewMs, leaseMarginMs: marginMs, storeWaitMs, mailboxMaxBytes } = limits;
    this.#options = options;
    this.lease = new Lease({
      instances: store.instances,
      leaseMs,
      renewMs,
      marginMs,
      mailboxMaxBytes,
      onPeerMessage: (letter) => this.#mail.receive(letter),
      onHeld: () => this.guard.release(),
      onRenamed: () => this.#renamed(),
      onTerm: () => this.#beginTerm(),
      onFailed,
    });
    this.guard = new OwnershipGuard({
      lease: this.lease,
      storeWaitMs,
      answerWaitMs: leaseMs + noticeMs,
      elsewhere: ({ key, server, principal }) => this.handleOf({ key, server, principal }),
    });
    this.directory = new Directory({
      store,
      lease: this.lease,
      leaseMs,
      ...{ find, formerServer },
      handleOf: (session) => this.guard.handleOf(session),
      adopt: (key, server, adoption, term) =>
        detach('cluster', this.opened(options.adopt(key, server, adoption), term)),
      mayAdopt,
      endingHere,
      onTakeoverLimit,
      hadBreak: () => this.#hadBreak,
    });
    this.#desk = new OwnerEndpoint({
      findHere: (key) => {
        const session = find(key);
        return session?.isReady ? this.guard.handleOf(session) : undefined;
      },
      isChanging: (key) => options.isEnding(key) || find(key) !== undefined || this.directory.isTakingOver(key),
      send: (to, letter, body) => detach('cluster', this.#reply(to, letter, body)),
    });
    this.#mail = new PeerLink({
      instances: store.instances,
      name: () => this.lease.name,
      requestWaitMs: storeWaitMs,
      mailboxMaxBytes,
      onMessage: (from, head, body) => this.#take(from, head, body),
      onLoss: (peer) => this.#lose(peer),
      onUnreadable: (from, head, why) => this.#misread(from, head, why),
    });
    this.#watch = setInterval(() => detach('cluster', this.#look()), watchMs).unref();
    store.onRecovered(() => this.#recovered());
  }

  /** Joins the others. */
  start(): void {
    this.lease.start();
  }

  /** Resolves when this instance may open sessions; false if it could not within the time. */
  async isReady(): Promise<boolean> {
    const until = performance.now() + this.#options.limits.storeWaitMs;
    while (!this.lease.isHeld && performance.now() < until) await delay(pauseMs);
    return this.lease.isHeld;
  }

  /** A session for a client, of which this instance does not know where it is. */
  handleOf(visitor: SessionLookup): SessionHandle {
    return {
      post: (post, reply) => this.#exchange(visitor, { kind: 'post', ...post }, reply),
      listen: (after, reply) => this.#exchange(visitor, { kind: 'listen', after }, reply),
      remove: (reply) => this.#exchange(visitor, { kind: 'remove' }, reply),
    };
  }

  /** Registers a session whose term may have passed while it was opened. */
  async opened(session: Session, term: number): Promise<void> {
    if (term === this.lease.term && term > 0) this.guard.verify(session, term);
    else await registerAll([session], this.lease, this.guard, this.#options.onFailed);
  }

  /**
   * Lets clients go whose sessions others hold: those with an event id at once, since they can go on elsewhere, the others
   * when they have their answer, or at the deadline (P9).
   */
  async leave(deadline: Promise<void>): Promise<void> {
    for (const exchange of this.#exchanges.values()) exchange.detach();
    await Promise.race([deadline, this.#isQuiet()]);
    for (const exchange of this.#exchanges.values()) exchange.close();
  }

  /** Gives up name and lease; the sessions are ended or released before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watch);
    detach('cluster', this.#mail.send(this.lease.name, { kind: 'hello' })); // wakes the loop that reads the mailbox
    await this.lease.close();
    this.#mail.close();
  }

  #exchange({ key, ...of }: SessionLookup, wanted: ClientOperation, reply: Reply): void {
    const { store, limits } = this.#options;
    const streams = this.#options.streamsOf?.(of.server.name);
    const visitor = { key, ...of, forwarded: reply.forwarded, scopes: reply.scopes };
    // An owner looks for itself what may be used; who reads the log without one has to know it now.
    const isFresh = wanted.kind === 'listen';
    // A lost owner may seem to live for a lease.
    const waitMs = Math.max(limits.storeWaitMs, limits.leaseMs + noticeMs);
    const insistence = { waitMs, isClosed: () => this.#isClosed };
    const exchange: ForwardedRequest = new ForwardedRequest(key, wanted, reply, {
      ...{ earlyStreamMs, name: () => this.lease.name },
      retryMsOfPriming: hasPrimingEvent(of.version ?? assumedRevision) ? limits.retryMs : undefined,
      isOneStream: visitor.isOneStream ?? false,
      admit: async (to) =>
        (await retryLookup(() => this.directory.admits(visitor, isFresh), exchange, to, insistence)) === 'yes',
      locate: async (to, failed) =>
        (await retryLookup(() => this.directory.locate(visitor, failed), exchange, to, insistence)) ?? 'none',
      send: (to, letter, body, onNumber) => this.#mail.send(to, letter, body, onNumber),
      isAlive: (peer) => isAlive(store.instances, peer, limits.leaseMs),
      replay: async (after, to) => {
        const primes = this.directory.primes(key);
        let outcome: ResumeOutcome = 'complete';
        const onWritten = (count: number): void => {
          outcome = 'resumed';
          streams?.delivered(count, 'replayed');
        };
        const reached = await replay({ log: store.log, key, primes, onWritten, ...limits }, after, to);
        if (reached === 'complete') streams?.resumed(outcome); // else its owner goes on, and tells
        return reached;
      },
      renumber: () => this.#enter(exchange),
      onOver: () => {
        for (const n of exchange.numbers) this.#exchanges.delete(n);
      },
    });
    exchange.begin();
    exchange.run().catch((cause: unknown) => {
      // The log is not asked any more; whatever else went wrong is told.
      if (reply.isGone && (cause instanceof StoreUnavailable || isAbort(cause))) return;
      this.#options.onFailed(cause);
      exchange.fail();
    });
  }

  /** Gives an exchange its next number; what comes under an earlier one still finds it. */
  #enter(exchange: ForwardedRequest): number {
    const n = ++this.#lastExchange;
    this.#exchanges.set(n, exchange);
    return n;
  }

  async #reply(to: string, letter: MessageToIngress, body?: Buffer): Promise<void> {
    const posted = await this.#mail.send(to, letter, body && [body]);
    if (posted === 'gone') this.#desk.ingressLost(to);
    // What does not fit here any more is told as a loss is: the ingress asks again from where it is.
    else if (posted === 'full') await this.#mail.send(to, { kind: 'hole' });
  }

  #take(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void {
    switch (head.kind) {
      case 'post':
      case 'listen':
      case 'remove':
      case 'gone':
      case 'read':
        return this.#desk.receive(from, head, body);
      default:
        this.#exchanges.get(head.n)?.receive(from, head, body);
    }
  }

  /** What nobody here can act on is answered all the same: a client must not wait for it. */
  #misread(from: string, { kind, n, key }: PeerMessageAddress, why: 'version' | 'fault'): void {
    if (typeof n !== 'number' || kind === 'gone' || kind === 'read') return; // nobody waits for anything
    if (key !== undefined) this.#desk.refuse(from, n, why === 'version' ? 'instances_differ' : 'internal');
    else this.#exchanges.get(n)?.replyUnreadable(from, n);
  }

  /** An instance is lost, or letters were: what waits for it here must not wait any longer. */
  #lose(instance: string, withdrawn?: ReadonlySet<number>, since?: number): void {
    for (const exchange of this.#exchanges.values()) {
      if (exchange.owner === instance) exchange.ownerLost(withdrawn, since);
    }
  }

  async #look(): Promise<void> {
    const now = performance.now();
    this.#unheardMs = Math.min(this.lease.unconfirmedMs, this.#unheardMs + Math.min(now - this.#lookedAt, heardMs));
    this.#lookedAt = now;
    const cutOffMs = this.#options.limits.leaseMs + strandedMs;
    if (this.#unheardMs >= cutOffMs) {
      for (const exchange of this.#exchanges.values()) exchange.endUnreachable(now - cutOffMs);
      for (const session of this.#options.sessions()) session.detachClients(cutOffMs);
    }
    const owners = [...this.#exchanges.values()].map(({ owner }) => owner).filter((owner) => owner !== undefined);
    const isTimeToForget = performance.now() - this.#forgotAt >= forgetMs;
    if (isTimeToForget) this.#forgotAt = performance.now();
    const idle = isTimeToForget ? this.#mail.receivers : [];
    const peers = [...new Set([...owners, ...this.#desk.ingresses, ...idle])];
    if (peers.length === 0) return;
    const alive = await this.#options.store.instances.areAlive(peers).catch(() => undefined);
    for (const [index, peer] of peers.entries()) if (alive?.[index] === false) await this.#bury(peer);
  }

  /** An instance is lost: what it was never given goes to the next owner, as new (docs/decisions/0069). */
  async #bury(peer: string): Promise<void> {
    if (this.#burying.has(peer)) return;
    this.#burying.add(peer);
    const { store, onFailed } = this.#options;
    const withdrawn = await this.#mail.withdraw(peer).catch((cause: unknown) => {
      if (cause instanceof StoreUnavailable && cause.reason !== 'refused') return undefined;
      onFailed(cause);
      return []; // nothing is known of the letters, and nobody is to wait until somebody mends that
    });
    this.#burying.delete(peer);
    if (withdrawn === undefined) return; // it is looked for again
    // A store that failed over may not know what it had given out before.
    this.#lose(peer, new Set(withdrawn), performance.now() - store.healthyForMs());
    this.#desk.ingressLost(peer);
    this.#mail.forget(peer);
  }

  /** This instance has another name: nobody answers to the old one, and nobody listens to it. */
  #renamed(): void {
    this.#mail.restart();
    for (const ingress of [...this.#desk.ingresses]) this.#desk.ingressLost(ingress);
    for (const exchange of this.#exchanges.values()) exchange.ownerLost();
  }

  /** What is owned here is registered again; and what was asked of others is asked again, since letters may be lost too. */
  #beginTerm(): void {
    const { sessions, onTerm, onFailed } = this.#options;
    onTerm();
    detach('cluster', registerAll(sessions(), this.lease, this.guard, onFailed));
    for (const exchange of this.#exchanges.values()) exchange.ownerLost();
  }

  /** The store answers again. What it said before may be lost: records, events, letters. */
  #recovered(): void {
    this.#hadBreak ||= this.lease.term > 0;
    this.lease.beginTerm();
    this.#mail.sendHello();
  }

  /** Resolves when no client waits for another instance. */
  async #isQuiet(): Promise<void> {
    while (this.#exchanges.size > 0 && !this.#isClosed) await delay(pauseMs);
  }
}

const isAbort = (cause: unknown): boolean => cause instanceof Error && cause.name === 'AbortError';
