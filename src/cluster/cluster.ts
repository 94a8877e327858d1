// Cluster: the instances that share a store own sessions under leases and forward client requests to the owners.

import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '../protocol/message/message.ts';
import type { Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import type { Session } from '../session/session.ts';
import { type SessionTelemetry, sessionName } from '../session/session-events.ts';
import type { ClientPost, SessionHandle } from '../session/session-handle.ts';
import type { MailboxBacklog } from '../store/instances.ts';
import type { ClusterStore } from '../store/store.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { ForwardedRequests } from './forward/forwarded-requests.ts';
import { OwnerEndpoint, type OwnerEndpointOptions } from './forward/owner-endpoint.ts';
import { DirectLinks, type LinkAddresses, type LinkSecrets } from './link/direct-links.ts';
import { PeerLink, type PeerMessageAddress } from './link/peer-link.ts';
import type { MessageToIngress, MessageToOwner } from './link/peer-messages.ts';
import { Directory, type DirectoryOptions } from './ownership/directory.ts';
import { OwnershipGuard } from './ownership/guard.ts';
import { Homes } from './ownership/homes.ts';
import { Lease } from './ownership/lease.ts';
import { isAlive } from './ownership/liveness.ts';
import { registerAll, registerAndSettle } from './ownership/registration.ts';
import { StoreSilence } from './ownership/store-silence.ts';

/** Times and sizes of a cluster; `docs/reference/configuration.md` explains each. */
export interface ClusterLimits {
  readonly leaseMs: number;
  readonly leaseRenewMs: number;
  readonly leaseMarginMs: number;
  readonly storeWaitMs: number;
  readonly mailboxMaxBytes: number;
  readonly reconnectDelayMs: number;
  readonly slowReaderMs: number;
}

/** How instances reach each other directly. */
export interface DirectLinkOptions {
  readonly secrets: LinkSecrets;
  readonly addresses: LinkAddresses;
}

/** The peers that this instance exchanges messages with, by the way of the messages. */
export interface PeerLinkCounts {
  readonly direct: number;
  readonly store: number;
}

/** Options of `Cluster`. */
export interface ClusterOptions
  extends Pick<DirectoryOptions, 'find' | 'currentServer' | 'formerServer' | 'mayAdopt' | 'endingHere' | 'isEnding'> {
  readonly store: ClusterStore;
  readonly limits: ClusterLimits;
  /** See `HomesOptions`. */
  readonly homeTtlMs: number;
  readonly openerOf: OwnerEndpointOptions['openerOf'];
  /** Absent if all messages between instances go through the store. */
  readonly directLink?: DirectLinkOptions | undefined;
  /** Makes a session that was taken over a session of this instance. */
  adopt(key: string, server: Server, adoption: Adoption): Session;
  /** The sessions of this instance. */
  sessions(): Iterable<Session>;
  /** The client whose stream this instance holds, by key; undefined if there is none. */
  findConnected(key: string): SessionHandle | undefined;
  /** A term of this instance has begun. The store may have lost what was kept there. */
  onTerm(): void;
  readonly telemetry: SessionTelemetry;
}

/** The interval of the check whether the owners and ingresses that matter here are alive. */
const checkMs = 500;

/** The interval of the check of all other peers. Dead ones are forgotten. */
const idleCheckMs = 60_000;

/** A client that waits for a lost owner or store gets an end within a lease plus this time (P3). */
const noticeMs = 2_000;

/**
 * An instance that has not reached the store for a lease plus this time sends its clients away. See
 * `ForwardedRequest.endUnreachable`.
 */
const strandedMs = 1_000;

/** A direct connection counts as lost after this fraction of a lease without progress. */
const silencesPerLease = 3;

/** The pause between two checks of readiness. */
const pauseMs = 50;

/** The instances that share a store, as seen by one of them. Any instance serves any session (docs/decisions/0015). */
export class Cluster {
  readonly guard: OwnershipGuard;
  readonly lease: Lease;
  readonly directory: Directory;
  readonly homes: Homes;
  /** The messages in the mailbox of this instance that it has not received. */
  readonly mailboxBacklog = (): Promise<MailboxBacklog> => this.#options.store.instances.backlog(this.lease.name);
  readonly #options: ClusterOptions;
  readonly #ownerEndpoint: OwnerEndpoint;
  readonly #peerLink: PeerLink;
  readonly #directLinks: DirectLinks | undefined;
  readonly #requests: ForwardedRequests;
  readonly #checkTimer: NodeJS.Timeout;
  /** Dead instances whose unread messages are being withdrawn. */
  readonly #withdrawing = new Set<string>();
  /** The store was away since the start, so missing data may be lost data. */
  #wasStoreAway = false;
  readonly #silence = new StoreSilence();
  #idleCheckedAt = performance.now();
  readonly #reportFailure = (cause: unknown): void => this.#options.telemetry.emit({ type: 'store-failed', cause });

  constructor(options: ClusterOptions) {
    const {
      store,
      limits,
      find,
      currentServer,
      formerServer,
      mayAdopt,
      endingHere,
      isEnding,
      telemetry: { emit },
    } = options;
    const { leaseMs, leaseRenewMs: renewMs, leaseMarginMs: marginMs, storeWaitMs, mailboxMaxBytes } = limits;
    this.#options = options;
    this.lease = new Lease({
      instances: store.instances,
      leaseMs,
      renewMs,
      marginMs,
      mailboxMaxBytes,
      onPeerMessage: (message) => this.#peerLink.receive(message),
      onHeld: () => this.guard.release(),
      onRenamed: () => this.#onRenamed(),
      onTerm: () => this.#beginTerm(),
      onFailed: this.#reportFailure,
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
      find,
      currentServer,
      formerServer,
      handleOf: (session) => this.guard.handleOf(session),
      adopt: (key, server, adoption, term) =>
        detach('cluster', this.opened(options.adopt(key, server, adoption), term)),
      mayAdopt,
      endingHere,
      isEnding,
      findSuccessor: () => this.findSuccessor(),
      onTakeoverLimit: (key, { name }) => emit({ type: 'takeover-limit-reached', name: sessionName(key, name) }),
      hadBreak: () => this.#wasStoreAway,
    });
    this.homes = new Homes({
      values: store.values,
      lease: this.lease,
      ttlMs: options.homeTtlMs,
      isAlive: (instance) => isAlive(store.instances, instance, leaseMs),
    });
    this.#requests = new ForwardedRequests({
      store,
      limits,
      directory: this.directory,
      noticeMs,
      telemetry: options.telemetry,
      name: () => this.lease.name,
      send: (to, message, body, onNumber) => this.#peerLink.send(to, message, body, onNumber),
      reportFailure: this.#reportFailure,
    });
    this.#ownerEndpoint = new OwnerEndpoint({
      openerOf: options.openerOf,
      findHere: (key) => {
        const session = find(key);
        return session?.isReady ? this.guard.handleOf(session) : options.findConnected(key);
      },
      adopt: (key, forwarded) => this.directory.takeOverReleased(key, forwarded).catch(this.#reportFailure),
      isChanging: (key) => isEnding(key) || find(key) !== undefined || this.directory.isTakingOver(key),
      send: (to, message, body) => detach('cluster', this.#reply(to, message, body)),
    });
    this.#peerLink = new PeerLink({
      instances: store.instances,
      name: () => this.lease.name,
      requestWaitMs: storeWaitMs,
      mailboxMaxBytes,
      direct: (peer) => this.#directLinks?.to(peer),
      onMessage: (from, head, body) => this.#dispatch(from, head, body),
      onLoss: (peer) => this.#requests.ownerLost(peer),
      onUnreadable: (from, head, why) => this.#answerUnreadable(from, head, why),
    });
    this.#directLinks =
      options.directLink &&
      new DirectLinks({
        ...options.directLink,
        instances: store.instances,
        silenceMs: leaseMs / silencesPerLease,
        name: () => this.lease.name,
        // A message waits in the store until this instance is sure of its lease, as a message of the mailbox does.
        onMessages: (from, first, contents) => this.lease.isHeld && this.#peerLink.receiveDirect(from, first, contents),
        onUnreachable: (instance, address) => emit({ type: 'direct-link-failed', instance, address }),
        onFault: this.#reportFailure,
      });
    this.#checkTimer = setInterval(() => detach('cluster', this.#checkPeers()), checkMs).unref();
    store.onRecovered(() => this.#onRecovered());
  }

  /** Joins the other instances. */
  start(): void {
    this.lease.start();
  }

  /** Accepts direct connections of other instances. Rejects if the address cannot be listened on. */
  async listen(): Promise<void> {
    await this.#directLinks?.listen();
  }

  /** The peers that messages are sent to, by the way that the messages take now; undefined without direct links. */
  get peerLinks(): PeerLinkCounts | undefined {
    const links = this.#directLinks;
    if (links === undefined) return undefined;
    const direct = links.reached.length;
    return { direct, store: this.#peerLink.peers.filter((peer) => !links.reaches(peer)).length };
  }

  /** Resolves to true when this instance may open sessions, or to false if it may not in time. */
  async isReady(): Promise<boolean> {
    const deadline = performance.now() + this.#options.limits.storeWaitMs;
    while (!this.lease.isHeld && performance.now() < deadline) await delay(pauseMs);
    return this.lease.isHeld;
  }

  /** A handle for a session whose owner is not known here. */
  handleOf(lookup: SessionLookup): SessionHandle {
    return this.#requests.handleOf(lookup);
  }

  /**
   * Opens a session at the instance that is its home, or here if that instance is lost or does not want it.
   * @param open opens the session here
   */
  openAt(home: string, lookup: SessionLookup, initialize: Message, reply: Reply, open: (reply: Reply) => void): void {
    this.#requests.openAt(home, lookup, initialize, reply, open);
  }

  /** Passes a POST to the instance that is the home, where its client is connected. */
  postToHome(home: readonly string[], lookup: SessionLookup, post: ClientPost, reply: Reply): void {
    this.#requests.postTo(() => this.homes.find(home), lookup, post, reply);
  }

  /**
   * One of the instances that this one has sent messages to, which can take sessions over in its place; undefined if none
   * is alive, or if that cannot be known.
   */
  async findSuccessor(): Promise<string | undefined> {
    const peers = this.#peerLink.peers.filter((peer) => peer !== this.lease.name);
    const alive = await this.#options.store.instances.areAlive(peers).catch(() => []);
    const living = peers.filter((_, index) => alive[index] === true);
    return living[Math.floor(Math.random() * living.length)];
  }

  /** Registers a session. Its term may have passed while the session was opened. */
  async opened(session: Session, term: number): Promise<void> {
    if (term === this.lease.term && term > 0) this.guard.verify(session, term);
    else await registerAll([session], this.lease, this.guard, this.#reportFailure);
  }

  /** Releases the clients whose sessions other instances own. See `ForwardedRequests.leave`. */
  leave(deadline: Promise<void>): Promise<void> {
    return this.#requests.leave(deadline);
  }

  /** Gives up name and lease. The sessions have been ended or released before. */
  async close(): Promise<void> {
    this.#requests.close();
    clearInterval(this.#checkTimer);
    detach('cluster', this.#peerLink.send(this.lease.name, { kind: 'hello' })); // wakes the loop that reads the mailbox
    await this.lease.close();
    await this.#directLinks?.close();
    this.#peerLink.close();
  }

  async #reply(to: string, message: MessageToIngress, body?: Buffer): Promise<void> {
    const outcome = await this.#peerLink.send(to, message, body && [body]);
    if (outcome === 'gone') this.#ownerEndpoint.ingressLost(to);
    // A reply that does not fit is reported as a loss: the ingress asks again from its position.
    else if (outcome === 'full') await this.#peerLink.send(to, { kind: 'hole' });
  }

  #dispatch(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void {
    switch (head.kind) {
      case 'post':
      case 'listen':
      case 'remove':
      case 'gone':
      case 'read':
        return this.#ownerEndpoint.receive(from, head, body);
      default:
        this.#requests.receive(from, head, body);
    }
  }

  /** Answers a message that this instance cannot act on, so that no client waits for it. */
  #answerUnreadable(from: string, { kind, n, key }: PeerMessageAddress, why: 'version' | 'fault'): void {
    if (typeof n !== 'number' || kind === 'gone' || kind === 'read') return; // no client waits for an answer to these
    if (key !== undefined) this.#ownerEndpoint.refuse(from, n, why === 'version' ? 'instances_differ' : 'internal');
    else this.#requests.receiveUnreadable(from, n);
  }

  async #checkPeers(): Promise<void> {
    const silenceLimitMs = this.#options.limits.leaseMs + strandedMs;
    if (this.#silence.check(this.lease.unconfirmedMs) >= silenceLimitMs) {
      this.#requests.endUnreachable(performance.now() - silenceLimitMs);
      for (const session of this.#options.sessions()) session.detachClients(silenceLimitMs);
    }
    const isIdleCheckDue = performance.now() - this.#idleCheckedAt >= idleCheckMs;
    if (isIdleCheckDue) this.#idleCheckedAt = performance.now();
    const idle = isIdleCheckDue ? this.#peerLink.peers : [];
    const peers = [...new Set([...this.#requests.owners, ...this.#ownerEndpoint.ingresses, ...idle])];
    if (peers.length === 0) return;
    const alive = await this.#options.store.instances.areAlive(peers).catch(() => undefined);
    for (const [index, peer] of peers.entries()) if (alive?.[index] === false) await this.#handleDeath(peer);
  }

  /**
   * Handles the death of an instance. Messages that it never received go to the next owner, as new ones
   * (docs/decisions/0069).
   */
  async #handleDeath(peer: string): Promise<void> {
    if (this.#withdrawing.has(peer)) return;
    this.#withdrawing.add(peer);
    const { store } = this.#options;
    const withdrawn = await this.#peerLink.withdraw(peer).catch((cause: unknown) => {
      if (cause instanceof StoreUnavailable && cause.reason !== 'refused') return undefined;
      this.#reportFailure(cause);
      return []; // the fate of the messages is unknown, and their clients must not wait for a repair
    });
    this.#withdrawing.delete(peer);
    if (withdrawn === undefined) return; // the next check tries again
    // After a failover, the store may not know which messages it had handed out before.
    this.#requests.ownerLost(peer, new Set(withdrawn), performance.now() - store.healthyForMs());
    this.#ownerEndpoint.ingressLost(peer);
    this.#directLinks?.forget(peer);
    this.#peerLink.forget(peer);
  }

  /** This instance has another name. Nothing is sent to the old name any more, and its messages are lost. */
  #onRenamed(): void {
    this.#directLinks?.restart();
    this.#peerLink.restart();
    for (const ingress of [...this.#ownerEndpoint.ingresses]) this.#ownerEndpoint.ingressLost(ingress);
    this.#requests.allOwnersLost();
  }

  /**
   * Registers the sessions of this instance again. Forwarded requests are sent again, since messages may be lost too.
   */
  #beginTerm(): void {
    const { sessions, telemetry } = this.#options;
    telemetry.emit({ type: 'store-joined' });
    this.#directLinks?.publish();
    this.#options.onTerm();
    detach('cluster', registerAndSettle(sessions, this.lease, this.guard, this.#reportFailure));
    this.#requests.allOwnersLost();
  }

  /** The store answers again. Records, events and messages that it had confirmed may be lost. */
  #onRecovered(): void {
    this.#wasStoreAway ||= this.lease.term > 0;
    this.lease.beginTerm();
    this.#peerLink.sendHello();
  }
}
