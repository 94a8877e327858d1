import { createHash, randomBytes } from 'node:crypto';
import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message.ts';
import type { Principal } from '../store/session-records.ts';
import type { Store } from '../store/store.ts';
import type { Adoption } from './adoption.ts';
import { Cluster, type ClusterLimits } from './cluster/cluster.ts';
import { nameOf, type SessionObserver } from './observer.ts';
import type { Reply } from './reply.ts';
import { Session, type SessionStart } from './session.ts';
import type { SessionHandle } from './session-handle.ts';
import type { Server, SessionOptions, SessionParts } from './session-parts.ts';
import { isRevisionOf, isSame } from './visitor.ts';

/** What the sessions of an instance share. */
export interface SessionsOptions extends SessionOptions {
  readonly store: Store;
  readonly observer: SessionObserver;
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  /** Set if other instances share the store. */
  readonly cluster?: ClusterLimits | undefined;
}

/**
 * `degraded`: the shared store does not answer, but may any moment. `unavailable`: it has not for a whole lease beyond the
 * one that was held.
 */
export type Readiness = 'ready' | 'degraded' | 'unavailable' | 'draining';

/** How often idle sessions and overdue calls are looked for, at least. */
const maxSweepMs = 30_000;

/** The store is told that the sessions here go on so often within the life of a record. */
const renewalsPerLife = 4;

/** The sessions of one instance, by key, and the way to those of others. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #byKey = new Map<string, Session>();
  /** Sessions that can no longer be used but whose backend or record may still be ending. */
  readonly #ending = new Map<string, Session>();
  readonly #sweep: NodeJS.Timeout;
  readonly #cluster: Cluster | undefined;
  readonly #closing = new AbortController();
  #isDraining = false;
  #renewedAt = performance.now();

  constructor(options: SessionsOptions) {
    this.#options = options;
    const { cluster, store, sessionIdleMs, requestIdleMs, requestMaxMs } = options;
    const renewMs = (cluster?.recordTtlMs ?? Number.POSITIVE_INFINITY) / renewalsPerLife;
    const shortestMs = Math.min(sessionIdleMs, requestIdleMs, requestMaxMs, renewMs);
    this.#sweep = setInterval(() => this.#endOverdue(), Math.min(maxSweepMs, Math.ceil(shortestMs / 4))).unref();
    if (cluster === undefined) return;
    this.#cluster = new Cluster({
      store,
      limits: cluster,
      sessions: () => this.#byKey.values(),
      find: (key) => this.#byKey.get(key),
      adopt: (key, server, adoption) => this.#adopt(key, server, adoption),
      mayAdopt: () => !this.#isDraining,
      endingHere: (key) => (this.#ending.get(key)?.leavesNoRecord ? 'unknown_session' : undefined),
      onWornOut: (key, { name }) => options.observer.wornOut(nameOf(key, name)),
      onTerm: () => options.observer.clusterJoined(),
      onFailed: (cause) => options.observer.clusterFailed(cause),
    });
    this.#cluster.start();
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** True once `drain` was called: no new sessions. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Whether new sessions are welcome. */
  get readiness(): Readiness {
    const { cluster } = this.#options;
    if (this.#isDraining) return 'draining';
    if (cluster === undefined || this.#cluster?.lease.isHeld) return 'ready';
    return (this.#cluster?.lease.unconfirmedMs ?? 0) < 2 * cluster.leaseMs ? 'degraded' : 'unavailable';
  }

  /** Opens a session for a client's `initialize` and answers it. */
  open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const cluster = this.#cluster;
    if (cluster === undefined || cluster.lease.isHeld) return this.#open(server, principal, initialize, reply);
    void cluster.isReady().then((isReady) => {
      if (reply.isGone) return;
      if (isReady) this.#open(server, principal, initialize, reply);
      else reply.fault('store_unavailable', initialize.id ?? null);
    });
  }

  /**
   * The session with this id, for requests of this principal to this server. To anyone else it does not exist (P11).
   * @param version what the request says of its revision, if it does
   */
  at(id: string, server: Server, principal: Principal, version: string | undefined): SessionHandle | Reason {
    const key = keyOf(id);
    const session = this.#byKey.get(key);
    if (session === undefined) return this.#cluster?.handleOf({ key, server, principal, version }) ?? 'unknown_session';
    if (session.server !== server || !isSame(session.principal, principal)) return 'unknown_session';
    if (!isRevisionOf(session, version)) return 'unsupported_version';
    return this.#cluster?.guard.handleOf(session) ?? session;
  }

  /**
   * Ends all sessions (P9): each when no request of it is in flight, those that are still busy after `graceMs` with an
   * error for what they wait for. With other instances they are released for them. Resolves when no backend is left.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    clearInterval(this.#sweep);
    const reason = this.#cluster === undefined ? 'draining' : 'released';
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.all(
      [...this.#byKey.values()].map(async (session) => {
        await Promise.race([session.whenIdle(), deadline]);
        if (reason === 'released' && session.hasPlaceless) await deadline;
        await session.end(session.isReady ? reason : 'draining');
      }),
    );
    await this.#cluster?.leave(deadline);
    clearTimeout(timer);
    this.#closing.abort();
    await Promise.all([...this.#ending.values()].map((session) => session.end('draining')));
    await this.#cluster?.close();
  }

  #open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const { maxSessions } = this.#options;
    if (this.#isDraining) return reply.fault('draining', initialize.id ?? null);
    if (this.#byKey.size + this.#ending.size >= maxSessions)
      return reply.fault('too_many_sessions', initialize.id ?? null);
    const id = randomBytes(32).toString('base64url');
    const session = this.#create(keyOf(id), server, principal, { epoch: Date.now(), initialize: initialize.text });
    session.start(initialize, id, reply);
  }

  #adopt(key: string, server: Server, adoption: Adoption): Session {
    const { principal, epoch, initialize } = adoption.record;
    const session = this.#create(key, server, principal, { epoch, initialize, adoption });
    this.#options.observer.adopted(session.name, { pending: adoption.calls.length });
    return session;
  }

  #create(key: string, server: Server, principal: Principal, start: SessionStart): Session {
    const { store, observer } = this.#options;
    const cluster = this.#cluster;
    const term = cluster?.lease.term ?? 0;
    const parts: SessionParts = {
      key,
      server,
      principal,
      instance: () => cluster?.lease ?? alone,
      store,
      storeSignal: this.#closing.signal,
      options: this.#options,
      observer,
      onReady: () => void cluster?.opened(session, term),
      onEnding: () => {
        if (this.#byKey.get(key) === session) this.#byKey.delete(key);
        this.#ending.set(key, session);
        cluster?.guard.release();
      },
      onEnded: () => {
        if (this.#ending.get(key) === session) this.#ending.delete(key);
      },
    };
    const session = new Session(parts, start);
    this.#byKey.set(key, session);
    return session;
  }

  #endOverdue(): void {
    for (const session of this.#byKey.values()) {
      session.endOverdueCalls();
      if (session.isIdleSince(this.#options.sessionIdleMs)) void session.end('idle');
    }
    const { cluster } = this.#options;
    if (cluster === undefined || performance.now() - this.#renewedAt < cluster.recordTtlMs / renewalsPerLife) return;
    this.#renewedAt = performance.now();
    const { store, observer } = this.#options;
    store.sessions.renew([...this.#byKey.keys()]).catch((cause: unknown) => observer.clusterFailed(cause));
  }
}

/** An instance that shares its store with nobody. */
const alone = { name: '', term: 0 };

/** The name of a session in the store, which does not open it (P12). */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('base64url');
