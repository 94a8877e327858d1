import { randomBytes } from 'node:crypto';
import { Cluster, type ClusterLimits } from '../cluster/cluster.ts';
import type { Reason } from '../protocol/faults.ts';
import { isHandshakeTooLarge } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import { isSame } from '../protocol/principal.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { ProcessCapacity, ProcessPurpose } from '../quota/process-capacity.ts';
import { noQuotas, type ProcessUse, type Quotas, type SessionUse } from '../quota/quotas.ts';
import type { SessionPermit } from '../quota/session-permit.ts';
import type { Headers, Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import { hasAssignedKey, isRevisionOf, type SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import { Session, type SessionStart } from '../session/session.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import { keyFromId, keyFromToken } from '../session/session-key.ts';
import { type SessionObserver, sessionName } from '../session/session-observer.ts';
import { type SessionOptions, type SessionParts, singleInstance } from '../session/session-options.ts';
import type { MailboxBacklog } from '../store/instances.ts';
import type { Store } from '../store/store.ts';
import { contain, detach } from '../util/boundary.ts';
import { AwaitedSessions } from './awaited-sessions.ts';
import { ConnectionSessions } from './connection-sessions.ts';
import { type Readiness, readinessOf } from './readiness.ts';
import { RecordRenewal } from './record-renewal.ts';
import { endInOrder, Retirements } from './retirement.ts';
import { Sweep } from './sweep.ts';

/** What the sessions of an instance share. */
export interface SessionsOptions extends SessionOptions {
  readonly store: Store;
  readonly observer: SessionObserver;
  readonly maxSessions: number;
  /** How long the store keeps a session that nobody renews, in milliseconds. */
  readonly recordTtlMs: number;
  readonly sessionIdleMs: number;
  /** How long a session of one stream lives without that stream, and the stream without its session. */
  readonly sseLingerMs: number;
  /** What principals may have in use; absent for anything. */
  readonly quotas?: Quotas;
  /** Set if other instances share the store. */
  readonly cluster?: ClusterLimits | undefined;
  /** A server by its name and digest, as it was configured before; undefined for none. */
  formerServer?(name: string, digest: string): Server | undefined;
}

/** The sessions of one instance, by key, and the way to those of others. */
export class Sessions implements ProcessCapacity {
  /** Those that have no key for others: each has one connection. */
  readonly connected: ConnectionSessions;
  /** Ends those of servers that are configured in another way by now. */
  readonly retirements: Retirements;
  readonly #options: SessionsOptions;
  readonly #quotas: Quotas;
  readonly #byKey = new Map<string, Session>();
  /** Sessions that can no longer be used but whose backend or record may still be ending. */
  readonly #ending = new Map<string, Session>();
  /** Processes that are of no session. */
  #processes = 0;
  readonly #sweep = new Sweep(() => this.#endOverdue());
  readonly #cluster: Cluster | undefined;
  /** Clients of one stream, which listen before they open their session. */
  readonly #expected: AwaitedSessions;
  readonly #closing = new AbortController();
  /** True once `drain` was called: no new sessions. */
  isDraining = false;
  /** What other instances have sent to this one and it has not received; undefined if there are none. */
  readonly mailboxBacklog = (): Promise<MailboxBacklog> | undefined => this.#cluster?.mailboxBacklog();
  readonly #renewal: RecordRenewal;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#quotas = options.quotas ?? noQuotas;
    const { cluster, store, sessionIdleMs, sseLingerMs, requestIdleMs, requestMaxMs } = options;
    // Also without other instances: a store in memory forgets a session that nobody renews, too.
    this.#renewal = new RecordRenewal(store, options.recordTtlMs, options.observer);
    const shortestMs = Math.min(sessionIdleMs, sseLingerMs, requestIdleMs, requestMaxMs, this.#renewal.everyMs);
    this.#sweep.notice(shortestMs);
    this.#expected = new AwaitedSessions({ find: (visitor) => this.#look(visitor), maxWaiting: options.maxSessions });
    this.connected = new ConnectionSessions({
      options,
      observer: options.observer,
      storeSignal: this.#closing.signal,
      quotas: this.#quotas,
      refuses: (of, initialize) => this.#refuses(of, initialize),
    });
    this.retirements = new Retirements([this.#byKey, this.#ending, this.connected], cluster !== undefined);
    if (cluster === undefined) return;
    this.#cluster = new Cluster({
      store,
      formerServer: (name, digest) => options.formerServer?.(name, digest),
      limits: cluster,
      sessions: () => this.#byKey.values(),
      find: (key) => this.#byKey.get(key),
      adopt: (key, server, adoption) => this.#adopt(key, server, adoption),
      mayAdopt: () => !this.isDraining,
      isEnding: (key) => this.#ending.has(key),
      endingHere: (key) => (this.#ending.get(key)?.leavesNoRecord ? 'unknown_session' : undefined),
      streamsOf: (server) => options.observer.streamsOf?.(server),
      onTakeoverLimit: (key, { name }) => options.observer.takeoverLimitReached(sessionName(key, name)),
      onTerm: () => options.observer.clusterJoined(),
      onFailed: (cause) => options.observer.clusterFailed(cause),
    });
    this.#cluster.start();
  }

  /** Those that can be used here. */
  get all(): readonly Session[] {
    return [...this.#byKey.values(), ...this.connected.values()];
  }

  /** Whether new sessions are welcome. */
  get readiness(): Readiness {
    const { cluster } = this.#options;
    return this.isDraining ? 'draining' : readinessOf(this.#cluster?.lease, cluster?.leaseMs ?? 0);
  }

  /** Opens a session for a client's `initialize` and answers it. */
  open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const id = randomBytes(32).toString('base64url');
    const visitor = { key: keyFromId(id), server, principal };
    this.#openSoon(visitor, initialize, reply, { 'mcp-session-id': id }).catch(this.#failed(reply));
  }

  /**
   * Opens a session under an endpoint token, for a client that hears everything, this answer too, on one stream
   * (docs/decisions/0018). The reply is `accepted` when the session is there, or `json` with the server's refusal.
   */
  openOneStream(token: string, server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const visitor = { key: keyFromToken(token, principal), server, principal, isOneStream: true };
    this.#openSoon(visitor, initialize, reply).catch(this.#failed(reply));
  }

  /**
   * The session of this name (`keyOfId`), for requests of this principal to this server. To anyone else it does not exist (P11).
   * @param version what the request says of its revision, if it does
   */
  at(key: string, server: Server, principal: Principal, version: string | undefined): SessionHandle | Reason {
    return this.#find({ key, server, principal, version });
  }

  /** The session under this endpoint token, as `at`. */
  atToken(token: string, server: Server, principal: Principal, version: string | undefined): SessionHandle | Reason {
    return this.#find({ key: keyFromToken(token, principal), server, principal, version, isOneStream: true });
  }

  /**
   * The session in one of the places of a group, wherever it is (docs/decisions/0027). `unknown_session` if there is none, or
   * it cannot be known now: `openForGroup` settles it.
   */
  async ofGroup(visitor: SessionLookup): Promise<SessionHandle | Reason> {
    const found = await this.#look(visitor);
    return found === 'later' ? 'unknown_session' : found;
  }

  /** Opens the session of a place and answers `initialize`, with `already_initialized` if there is one by then. */
  openForGroup(visitor: SessionLookup, initialize: Message, reply: Reply): void {
    this.#openSoon(visitor, initialize, reply).catch(this.#failed(reply));
  }

  /**
   * Listens to the session that a client is about to open under this endpoint token, wherever its `initialize` lands.
   * @returns why not, if it may not; else the reply is answered, now or later
   */
  listenBeforeOpen(
    token: string,
    server: Server,
    principal: Principal,
    after: EventId,
    reply: Reply,
  ): Reason | undefined {
    const { refusal } = this.#expected;
    if (refusal !== undefined) return refusal;
    const leave = this.#quotas.admitWaiting(principal);
    if (typeof leave === 'string') return leave;
    const visitor = { key: keyFromToken(token, principal), server, principal, isOneStream: true };
    const withinMs = this.#options.sseLingerMs + server.startTimeoutMs;
    this.#expected.listen(visitor, withinMs, after, reply).catch(this.#failed(reply)).finally(leave);
    return undefined;
  }

  /** As `ProcessRoom` has it. */
  acquireProcess(of: ProcessUse, { isAdmitted, isOfRequest }: ProcessPurpose): SessionPermit | Reason {
    const quotas = this.#quotas;
    const own = isOfRequest ? quotas.sessionRefusal(of) : quotas.processRefusal(of);
    const refused = isAdmitted ? undefined : (own ?? this.#lacksRoom());
    if (refused !== undefined) return refused;
    const seat = isOfRequest ? quotas.acquireSession(of) : quotas.acquireProcess(of);
    this.#processes += 1;
    return {
      started: () => seat.started(),
      ending: () => seat.ending(),
      ended: () => {
        this.#processes -= 1;
        seat.ended();
      },
    };
  }

  /**
   * Ends all sessions (P9): each when no request of it is in flight, those that are still busy after `graceMs` with an
   * error for what they wait for. With other instances they are released for them. Resolves when no backend is left.
   */
  async drain(graceMs: number): Promise<void> {
    this.isDraining = true;
    this.retirements.close();
    this.#sweep.stop();
    this.#expected.close();
    const reason = this.#cluster === undefined ? 'draining' : 'released';
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    const takeoversEnded = Promise.race([this.#cluster?.directory.settled(), deadline]);
    // Again and again: a session that was being taken over when the drain began is one, too.
    do {
      await Promise.all([
        ...Array.from(this.#byKey.values(), (session) => endInOrder(session, reason, deadline)),
        ...Array.from(this.connected.values(), (session) => endInOrder(session, 'draining', deadline)),
        takeoversEnded,
      ]);
    } while (this.#byKey.size > 0);
    await this.#cluster?.leave(deadline);
    clearTimeout(timer);
    this.#closing.abort();
    const ending = [...this.#ending.values(), ...this.connected.ending()];
    await Promise.all(ending.map((session) => session.end('draining')));
    await this.#cluster?.close();
  }

  /** Answers a request after a fault of the gateway. */
  #failed(reply: Reply): (cause: unknown) => void {
    return (cause) => {
      this.#options.observer.clusterFailed(cause);
      if (!reply.isGone) reply.fault('internal', null);
    };
  }

  #find(visitor: SessionLookup): SessionHandle | Reason {
    const { key, server, principal, version } = visitor;
    const session = this.#byKey.get(key);
    const isTheirs = session?.server.name === server.name && isSame(session.principal, principal);
    // Others do not know of one that is not ready, whose client waits; to whom it does not belong it is unknown (P11).
    if (!isTheirs || (hasAssignedKey(visitor) && !session.isReady))
      return this.#cluster?.handleOf(visitor) ?? 'unknown_session';
    if (!isRevisionOf(session, version)) return 'unsupported_version';
    return this.#cluster?.guard.handleOf(session) ?? session;
  }

  /** Whether there is a session, here or elsewhere. */
  async #look(visitor: SessionLookup): Promise<SessionHandle | Reason | 'later'> {
    if (this.#byKey.get(visitor.key)?.isReady === false) return 'later';
    if (this.#cluster === undefined) return this.#find(visitor);
    const said = await this.#cluster.directory.admits(visitor);
    if (said === 'later') return said;
    return said === 'yes' ? this.#find(visitor) : said.fault;
  }

  async #openSoon(visitor: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): Promise<void> {
    const cluster = this.#cluster;
    const id = initialize.id ?? null;
    if (cluster !== undefined && !cluster.lease.isHeld && !(await cluster.isReady())) {
      if (!reply.isGone) reply.fault('store_unavailable', id);
      return;
    }
    // Only where the key is not made here there can be a session already.
    if (hasAssignedKey(visitor) && typeof (await this.#look(visitor)) === 'object')
      return reply.fault('already_initialized', id);
    // The place of a group is free when nothing is left of the session that had it.
    if (visitor.isGroup) await this.#ending.get(visitor.key)?.end('idle');
    if (!reply.isGone) this.#open(visitor, initialize, reply, headers);
  }

  #open(visitor: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): void {
    const { key, server, principal, isOneStream, isGroup, topic } = visitor;
    const isTaken = this.#byKey.has(key) || this.#ending.has(key);
    const refused = isTaken ? 'already_initialized' : this.#refuses({ server, principal }, initialize);
    if (refused !== undefined) return reply.fault(refused, initialize.id ?? null);
    const start = { epoch: Date.now(), initialize: initialize.text, isOneStream, isGroup, topic };
    this.#create(key, server, principal, start).start(reply, headers);
  }

  /** Why no session more is opened here. */
  #refuses(of: SessionUse, initialize: Message): Reason | undefined {
    if (isHandshakeTooLarge(initialize)) return 'initialize_too_large';
    if (this.isDraining) return 'draining';
    if (this.retirements.includes(of.server)) return 'server_reconfigured';
    return this.#quotas.sessionRefusal(of) ?? this.#lacksRoom();
  }

  #lacksRoom(): Reason | undefined {
    const count = this.#byKey.size + this.#ending.size + this.connected.size + this.#processes;
    return count < this.#options.maxSessions ? undefined : 'too_many_sessions';
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
    const seat = this.#quotas.acquireSession({ server, principal });
    this.#sweep.notice(server.hibernateAfterMs);
    const parts: SessionParts = {
      ...{ key, server, principal, store, observer, options: this.#options, storeSignal: this.#closing.signal },
      instance: () => cluster?.lease ?? singleInstance,
      onStart: seat.started,
      onReady: () => {
        detach('session', cluster?.opened(session, term));
        this.#expected.arrived(key);
      },
      onEnding: () => {
        if (this.#byKey.get(key) === session) this.#byKey.delete(key);
        this.#ending.set(key, session);
        seat.ending();
        cluster?.guard.release();
      },
      onEnded: () => {
        if (this.#ending.get(key) === session) this.#ending.delete(key);
        seat.ended();
      },
    };
    const session: Session = new Session(parts, start);
    this.#byKey.set(key, session);
    return session;
  }

  #lookAt(session: Session): void {
    session.endOverdueCalls();
    if (session.idleness.isIdleSince(this.#options.sessionIdleMs)) detach('session', session.end('idle'));
    else session.hibernateIfUnused();
    if (session.idleness.isDesertedSince(this.#options.sseLingerMs)) detach('session', session.end('client_gone'));
  }

  #endOverdue(): void {
    for (const session of this.all) {
      const endAsInternal = (): void => detach('session', session.end('internal'));
      contain('session', () => this.#lookAt(session), endAsInternal);
    }
    this.#renewal.renewDue(this.#byKey);
  }
}
