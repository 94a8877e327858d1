// Cluster: the instances that share a store own sessions under leases and forward client requests to the owners.

import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterLimits } from '../../app/features/stores.ts';
import type { ClusterHost, PeerStates, SessionCluster } from '../../core/registry/session-cluster.ts';
import type { Session } from '../../core/session/session.ts';
import { sessionName } from '../../core/session/session-events.ts';
import { retryWhileUnavailable } from '../../core/store/retry-unavailable.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import { detach } from '../../core/util/boundary.ts';
import { ForwardedRequests } from './forward/forwarded-requests.ts';
import { OwnerEndpoint } from './forward/owner-endpoint.ts';
import { Directory } from './ownership/directory.ts';
import { OwnershipGuard } from './ownership/guard.ts';
import { Homes } from './ownership/homes.ts';
import { Lease } from './ownership/lease.ts';
import { registerAll, registerAndSettle } from './ownership/registration.ts';
import type { PeerTransport } from './peers/peer-request.ts';

/**
 * The most that counts of the time between two checks, in milliseconds. A process that was frozen could not have reached
 * the store meanwhile.
 */
const maxCountedMs = 1_000;

/** Measures for how long the store could have answered this instance, and did not. */
class StoreSilence {
  #checkedAt = performance.now();
  #silentMs = 0;

  /**
   * Counts the time since the last check.
   * @param unconfirmedMs the time since the store last confirmed the lease, in milliseconds
   * @returns the silence so far, in milliseconds
   */
  check(unconfirmedMs: number): number {
    const now = performance.now();
    this.#silentMs = Math.min(unconfirmedMs, this.#silentMs + Math.min(now - this.#checkedAt, maxCountedMs));
    this.#checkedAt = now;
    return this.#silentMs;
  }
}

/** Options of `Cluster`. */
export interface ClusterOptions extends ClusterHost {
  readonly store: ClusterStore;
  readonly limits: ClusterLimits;
  /** The way to other instances; absent if there can be none. */
  readonly peers?: PeerTransport | undefined;
}

/** The interval of the check whether the owners and ingresses that matter here are alive. */
const checkMs = 500;

/** A client that waits for a lost owner or store gets an end within a lease plus this time (P3). */
const noticeMs = 2_000;

/**
 * An instance that has not reached the store for a lease plus this time sends its clients away. See
 * `ForwardedRequest.endUnreachable`.
 */
const strandedMs = 1_000;

/** The pause between two checks of readiness. */
const pauseMs = 50;

/** The instances that share a store, as seen by one of them. Any instance serves any session (docs/decisions/0015). */
export class Cluster implements SessionCluster {
  readonly guard: OwnershipGuard;
  readonly lease: Lease;
  readonly directory: Directory;
  readonly homes: Homes;
  readonly requests: ForwardedRequests;
  readonly #options: ClusterOptions;
  readonly #peers: PeerTransport;
  readonly #checkTimer: NodeJS.Timeout;
  /** The store was away since the start, so missing data may be lost data. */
  #wasStoreAway = false;
  readonly #silence = new StoreSilence();
  readonly #reportFailure = (cause: unknown): void => this.#options.telemetry.emit({ type: 'store-failed', cause });

  constructor(options: ClusterOptions) {
    const {
      store,
      limits,
      find,
      currentServer,
      formerServer,
      mayAdopt,
      findEnding,
      telemetry: { emit },
      peers = nobody,
    } = options;
    const { leaseMs, leaseRenewMs: renewMs, leaseMarginMs: marginMs, storeWaitMs } = limits;
    this.#options = options;
    this.#peers = peers;
    this.lease = new Lease({
      instances: store.instances,
      leaseMs,
      renewMs,
      marginMs,
      onHeld: () => this.guard.release(),
      onTerm: () => this.#beginTerm(),
      onFailed: this.#reportFailure,
    });
    this.guard = new OwnershipGuard({
      lease: this.lease,
      storeWaitMs,
      answerWaitMs: leaseMs + noticeMs,
      elsewhere: ({ key, server, principal }) => this.requests.handleOf({ key, server, principal }),
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
      findEnding,
      findSuccessor: () => this.findSuccessor(),
      onTakeoverLimit: (key, { name }) => emit({ type: 'takeover-limit-reached', name: sessionName(key, name) }),
      hadBreak: () => this.#wasStoreAway,
    });
    this.homes = new Homes({
      values: store.values,
      lease: this.lease,
      ttlMs: options.homeTtlMs,
      storeWaitMs,
      isAlive: (instance) => this.isAlive(instance),
      isReady: () => this.isReady(),
    });
    this.requests = new ForwardedRequests({
      store,
      limits,
      directory: this.directory,
      homes: this.homes,
      noticeMs,
      telemetry: options.telemetry,
      ask: (...request) => peers.ask(...request),
      reportFailure: this.#reportFailure,
    });
    const ownerEndpoint = new OwnerEndpoint({
      openerOf: options.openerOf,
      findHere: (key) => this.directory.handleHere(key) ?? options.findConnected(key),
      adopt: (key, forwarded) => this.directory.takeOverReleased(key, forwarded).catch(this.#reportFailure),
      isChanging: (key) => findEnding(key) !== undefined || find(key) !== undefined || this.directory.isTakingOver(key),
    });
    peers.attach({
      name: () => this.lease.name,
      serve: (request, body, reply) => ownerEndpoint.serve(request, body, reply),
    });
    this.#checkTimer = setInterval(() => {
      this.homes.renew();
      detach('cluster', this.#checkPeers());
    }, checkMs).unref();
    store.onRecovered(() => this.#onRecovered());
  }

  /** Joins the other instances. */
  start(): void {
    this.lease.start();
  }

  /** Accepts requests of other instances. Rejects if the address cannot be listened on. */
  async listen(): Promise<void> {
    await this.#peers.listen();
  }

  /** The other instances, by whether they answer; undefined if there can be none. */
  get peers(): PeerStates | undefined {
    return this.#options.peers?.states;
  }

  /** Resolves to true when this instance may open sessions, or to false if it may not in time. */
  async isReady(): Promise<boolean> {
    const deadline = performance.now() + this.#options.limits.storeWaitMs;
    while (!this.lease.isHeld && performance.now() < deadline) await delay(pauseMs);
    return this.lease.isHeld;
  }

  /** True if an instance holds its lease. If the store does not answer for a lease, the instance counts as dead. */
  async isAlive(instance: string): Promise<boolean> {
    const { store, limits } = this.#options;
    const check = () => store.instances.areAlive([instance]);
    const [holdsLease] = await retryWhileUnavailable(check, AbortSignal.timeout(limits.leaseMs)).catch(() => []);
    return holdsLease === true;
  }

  /** One of the other instances, which can take sessions over in place of this one; undefined if there is none. */
  async findSuccessor(): Promise<string | undefined> {
    const peers = this.#peers.names;
    const alive = await this.#options.store.instances.areAlive(peers).catch(() => []);
    const living = peers.filter((_, index) => alive[index] === true);
    return living[Math.floor(Math.random() * living.length)];
  }

  /** Registers a session. Its term may have passed while the session was opened. */
  async opened(session: Session, term: number): Promise<void> {
    if (term === this.lease.term && term > 0) this.guard.verify(session, term);
    else await registerAll([session], this.lease, this.guard, this.#reportFailure);
  }

  /** Gives up name and lease. The sessions have been ended or released before. */
  async close(): Promise<void> {
    this.requests.close();
    clearInterval(this.#checkTimer);
    await this.lease.close();
    await this.#peers.close();
  }

  async #checkPeers(): Promise<void> {
    const silenceLimitMs = this.#options.limits.leaseMs + strandedMs;
    if (this.#silence.check(this.lease.unconfirmedMs) >= silenceLimitMs) {
      this.requests.endUnreachable(performance.now() - silenceLimitMs);
      for (const session of this.#options.sessions()) session.log.streams.detachClients(silenceLimitMs);
    }
    const owners = [...new Set(this.requests.owners)];
    if (owners.length === 0) return;
    const alive = await this.#options.store.instances.areAlive(owners).catch(() => undefined);
    for (const [index, owner] of owners.entries()) {
      if (alive?.[index] !== false || this.#peers.isRenamed(owner)) continue;
      this.requests.ownerLost(owner);
      this.#peers.forget(owner);
    }
  }

  /** Registers the sessions of this instance again. */
  #beginTerm(): void {
    const { sessions, telemetry } = this.#options;
    telemetry.emit({ type: 'store-joined' });
    this.#peers.publish();
    this.homes.renew(0);
    detach('cluster', registerAndSettle(sessions, this.lease, this.guard, this.#reportFailure));
  }

  /** The store answers again. Records and events that it had confirmed may be lost. */
  #onRecovered(): void {
    this.#wasStoreAway ||= this.lease.term > 0;
    this.lease.beginTerm();
  }
}

/** The way to other instances where there can be none. */
const nobody: PeerTransport = {
  attach: () => undefined,
  listen: async () => undefined,
  ask(_to, _request, _body, listener) {
    queueMicrotask(() => listener.failed('unsent'));
    return { isSent: false, resume: () => undefined, abort: () => undefined };
  },
  states: { reachable: 0, unreachable: [] },
  names: [],
  publish: () => undefined,
  isRenamed: () => false,
  forget: () => undefined,
  close: async () => undefined,
};
