// Cluster: the instances that share a store own sessions under leases and forward client requests to the owners.

import type { PeerStates, SessionCluster } from '../../core/registry/session-cluster.ts';
import { detach } from '../../core/util/boundary.ts';
import type { ClusterOptions } from './cluster-parts.ts';
import { ForwardedRequests } from './forward/forwarded-requests.ts';
import { OwnerEndpoint } from './forward/owner-endpoint.ts';
import { Directory } from './ownership/directory.ts';
import { OwnershipGuard } from './ownership/guard.ts';
import { Homes } from './ownership/homes.ts';
import { Lease } from './ownership/lease.ts';

/**
 * The most that counts of the time between two checks, in milliseconds. A process that was frozen could not have reached
 * the store meanwhile.
 */
const maxCountedMs = 1_000;

/** The interval of the check whether the owners and ingresses that matter here are alive. */
const checkMs = 500;

/**
 * An instance that has not reached the store for a lease plus this time sends its clients away. See
 * `ForwardedRequest.endUnreachable`.
 */
const strandedMs = 1_000;

/** The instances that share a store, as seen by one of them. Any instance serves any session (docs/decisions/0015). */
export class Cluster implements SessionCluster {
  readonly guard: OwnershipGuard;
  readonly lease: Lease;
  readonly directory: Directory;
  readonly homes: Homes;
  readonly requests: ForwardedRequests;
  readonly #options: ClusterOptions;
  readonly #checkTimer: NodeJS.Timeout;
  #checkedAt = performance.now();
  /** For how long the store could have answered this instance, and did not. */
  #silentMs = 0;

  constructor(options: ClusterOptions) {
    const { store, peers } = options;
    this.#options = options;
    this.lease = new Lease(
      options,
      () => this.guard.release(),
      () => this.#beginTerm(),
    );
    this.guard = new OwnershipGuard(options, this.lease, ({ key, server, principal }) =>
      this.requests.handleOf({ key, server, principal }),
    );
    this.directory = new Directory(options, this.lease, this.guard);
    this.homes = new Homes(options, this.lease, this.directory);
    this.requests = new ForwardedRequests(options, this.directory, this.homes);
    const ownerEndpoint = new OwnerEndpoint(options, this.directory);
    peers?.attach({
      name: () => this.lease.name,
      serve: (request, body, reply) => ownerEndpoint.serve(request, body, reply),
    });
    this.#checkTimer = setInterval(() => {
      this.homes.renew();
      detach('cluster', this.#checkPeers());
    }, checkMs).unref();
    store.onRecovered(() => this.lease.noteRecovery());
    this.lease.start();
  }

  /** Accepts requests of other instances. Rejects if the address cannot be listened on. */
  async listen(): Promise<void> {
    await this.#options.peers?.listen();
  }

  /** The other instances, by whether they answer; undefined if there can be none. */
  get peers(): PeerStates | undefined {
    return this.#options.peers?.states;
  }

  /** Gives up name and lease. The sessions have been ended or released before. */
  async close(): Promise<void> {
    this.requests.close();
    clearInterval(this.#checkTimer);
    await this.lease.close();
    await this.#options.peers?.close();
  }

  async #checkPeers(): Promise<void> {
    const { limits, sessions, store } = this.#options;
    const silenceLimitMs = limits.leaseMs + strandedMs;
    const now = performance.now();
    this.#silentMs = Math.min(this.lease.unconfirmedMs, this.#silentMs + Math.min(now - this.#checkedAt, maxCountedMs));
    this.#checkedAt = now;
    if (this.#silentMs >= silenceLimitMs) {
      this.requests.endUnreachable(now - silenceLimitMs);
      for (const session of sessions()) session.log.streams.detachClients(silenceLimitMs);
    }
    const owners = [...new Set(this.requests.owners)];
    if (owners.length === 0) return;
    const alive = await store.instances.areAlive(owners).catch(() => undefined);
    for (const [index, owner] of owners.entries()) {
      if (alive?.[index] !== false || this.#options.peers?.isRenamed(owner)) continue;
      this.requests.ownerLost(owner);
      this.#options.peers?.forget(owner);
    }
  }

  #beginTerm(): void {
    this.#options.telemetry.emit({ type: 'store-joined' });
    this.#options.peers?.publish();
    this.homes.renew(0);
    detach('cluster', this.guard.beginTerm());
  }
}
