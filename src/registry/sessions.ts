// The registry: finds, opens, retires and drains the sessions of this instance, and finds those of other instances.

import { randomBytes } from 'node:crypto';
import { Cluster, type ClusterLimits, type DirectLinkOptions, type PeerLinkCounts } from '../cluster/cluster.ts';
import type { RemoteOpening } from '../cluster/link/peer-messages.ts';
import type { Reason } from '../protocol/faults.ts';
import { isHandshakeTooLarge } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import { ownsOrShares } from '../protocol/principal.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { ProcessCapacity, ProcessPurpose } from '../quota/process-capacity.ts';
import { noQuotas, type ProcessUse, type Quotas, type SessionUse } from '../quota/quotas.ts';
import type { SessionPermit } from '../quota/session-permit.ts';
import { faultAnswer, type Headers, type Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import { hasAssignedKey, isRevisionOf, type SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import { oneStreamLeftMs } from '../session/requests/listener-gate.ts';
import { Session, type SessionHost } from '../session/session.ts';
import type { SessionStart } from '../session/session-context.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import { keyFromId, keyFromToken } from '../session/session-key.ts';
import { type SessionOptions, type SessionParts, singleInstance } from '../session/session-options.ts';
import type { MailboxBacklog } from '../store/instances.ts';
import type { ClusterStore, Store } from '../store/store.ts';
import { contain, detach } from '../util/boundary.ts';
import { AwaitedSessions } from './awaited-sessions.ts';
import { ConnectionSessions } from './connection-sessions.ts';
import { idHeader, OpeningReply, opensRemotely } from './opening-reply.ts';
import { type Readiness, readinessOf } from './readiness.ts';
import { RecordRenewal } from './record-renewal.ts';
import { endInOrder, Retirements } from './retirement.ts';
import { Sweep } from './sweep.ts';
import { type EarlyPost, UnopenedPosts } from './unopened-posts.ts';

/** The shared store, and the limits of the instances that share it. */
export interface ClusterOfSessions {
  readonly store: ClusterStore;
  readonly limits: ClusterLimits;
  /** Absent if all messages between instances go through the store. */
  readonly directLink?: DirectLinkOptions | undefined;
}

/** Options shared by the sessions of an instance. */
export interface SessionsOptions extends SessionOptions {
  readonly store: Store;
  readonly telemetry: SessionTelemetry;
  readonly maxSessions: number;
  /** How long the store keeps a session that is not renewed, in milliseconds. */
  readonly recordTtlMs: number;
  readonly sessionIdleMs: number;
  /** How long a session keeps its process after its client closed the GET stream; see `Session.leaveIfAbandoned`. */
  readonly abandonedMs: number;
  /** How long a one-stream session lives without its stream, and the stream without its session. */
  readonly sseLingerMs: number;
  /** The limits of principals; absent for none. */
  readonly quotas?: Quotas;
  /** Set if other instances share the store, which is the same one as `store`. */
  readonly cluster?: ClusterOfSessions | undefined;
  /** A server as it was configured before, by its name and digest; undefined if it is not known. */
  formerServer?(name: string, digest: string): Server | undefined;
  /** A configured server by its name. */
  currentServer?(name: string): Server | undefined;
}

/** The sessions of one instance, by key, and the way to sessions of other instances. */
export class Sessions implements ProcessCapacity, SessionHost {
  /** Sessions that belong to one connection and that no request can name. */
  readonly connected: ConnectionSessions;
  /** Ends the sessions of servers that were removed or reconfigured. */
  readonly retirements: Retirements;
  readonly #options: SessionsOptions;
  readonly #quotas: Quotas;
  readonly #byKey = new Map<string, Session>();
  /** Sessions that can no longer be used but whose backend or record may still be ending. */
  readonly #ending = new Map<string, Session>();
  /** Number of processes that belong to no session. */
  #processes = 0;
  readonly #sweep = new Sweep(() => this.#endOverdue());
  readonly #cluster: Cluster | undefined;
  /** Clients of one stream that listen before they open their session. */
  readonly #awaited: AwaitedSessions;
  readonly #unopened: UnopenedPosts;
  readonly #closing = new AbortController();
  readonly #instance: SessionParts['instance'] = () => this.#cluster?.lease ?? singleInstance;
  /** True once `drain` was called: no new sessions. */
  isDraining = false;
  /** The messages that other instances have sent and this one has not received; undefined without a cluster. */
  readonly mailboxBacklog = (): Promise<MailboxBacklog> | undefined => this.#cluster?.mailboxBacklog();
  readonly #recordRenewal: RecordRenewal;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#quotas = options.quotas ?? noQuotas;
    const { cluster, store, sessionIdleMs, abandonedMs, sseLingerMs, requestIdleMs, requestTotalMs } = options;
    // A single instance needs this too: the memory store also forgets a session that is not renewed.
    this.#recordRenewal = new RecordRenewal(store, options.recordTtlMs, options.telemetry.emit);
    const shortestMs = Math.min(
      sessionIdleMs,
      abandonedMs,
      sseLingerMs,
      oneStreamLeftMs,
      requestIdleMs,
      requestTotalMs,
    );
    this.#sweep.notice(Math.min(shortestMs, this.#recordRenewal.everyMs));
    this.#awaited = new AwaitedSessions({
      find: (lookup) => this.#findAnywhere(lookup),
      maxWaiting: options.maxSessions,
      ...(cluster && { subscribe: (key, onMessage) => this.#hearFor(key, onMessage) }),
    });
    this.#unopened = new UnopenedPosts({
      open: (lookup, initialize, reply) => this.#openWhenReady(lookup, initialize, reply),
      find: (lookup) => this.#find(lookup),
    });
    this.connected = new ConnectionSessions({
      options,
      telemetry: options.telemetry,
      storeSignal: this.#closing.signal,
      quotas: this.#quotas,
      refuses: (use, initialize) => this.#refusalFor(use, initialize),
    });
    this.retirements = new Retirements([this.#byKey, this.#ending, this.connected], cluster !== undefined);
    if (cluster === undefined) return;
    this.#cluster = new Cluster({
      store: cluster.store,
      limits: cluster.limits,
      directLink: cluster.directLink,
      currentServer: (name) => options.currentServer?.(name),
      formerServer: (name, digest) => options.formerServer?.(name, digest),
      sessions: () => this.#byKey.values(),
      find: (key) => this.#byKey.get(key),
      adopt: (key, server, adoption) => this.#adopt(key, server, adoption),
      openerOf: (key, opening, initialize) => this.#openerOf(key, opening, initialize),
      homeTtlMs: options.recordTtlMs,
      mayAdopt: () => !this.isDraining,
      isEnding: (key) => this.#ending.has(key),
      endingHere: (key) => (this.#ending.get(key)?.leavesNoRecord ? 'unknown_session' : undefined),
      telemetry: options.telemetry,
    });
    this.#cluster.start();
  }

  /** The sessions that can be used here. */
  get all(): readonly Session[] {
    return [...this.#byKey.values(), ...this.connected.values()];
  }

  /** The number of the sessions that can be used here. */
  get count(): number {
    return this.#byKey.size + this.connected.size;
  }

  /** Whether new sessions are welcome. */
  get readiness(): Readiness {
    const { cluster } = this.#options;
    return this.isDraining ? 'draining' : readinessOf(this.#cluster?.lease, cluster?.limits.leaseMs ?? 0);
  }

  /** The other instances that messages are sent to, by the way of the messages; undefined without direct links. */
  get peerLinks(): PeerLinkCounts | undefined {
    return this.#cluster?.peerLinks;
  }

  /** Accepts direct connections of other instances. Rejects if the address cannot be listened on. */
  async listenForPeers(): Promise<void> {
    await this.#cluster?.listen();
  }

  /** Opens a session for a client's `initialize` and answers it. */
  open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const id = randomBytes(32).toString('base64url');
    const lookup = { key: keyFromId(id), server, principal };
    const headers = { [idHeader]: id };
    const home = this.#cluster && homeOf(server, principal, initialize);
    const isElsewhere = home !== undefined || (this.#cluster !== undefined && this.isDraining);
    if (isElsewhere) this.#openElsewhere(home, lookup, initialize, new OpeningReply(reply, headers));
    else this.#openWhenReady(lookup, initialize, reply, headers).catch(this.#faultHandler(reply));
  }

  /**
   * Opens a session where its client finds the processes of its last session (docs/decisions/0131). While this instance
   * stops, another one opens it.
   */
  #openElsewhere(home: Home | undefined, lookup: SessionLookup, initialize: Message, reply: Reply): void {
    const cluster = this.#cluster as Cluster;
    const openHere = (to: Reply): void => this.#openAsHome(home, lookup, initialize, to);
    const findInstance = async (): Promise<string | undefined> =>
      (home && (await cluster.homes.find(home))) ?? (this.isDraining ? cluster.findSuccessor() : undefined);
    findInstance()
      .then((instance) => {
        if (reply.isGone) return;
        if (instance === undefined) openHere(reply);
        else cluster.openAt(instance, lookup, initialize, reply, openHere);
      })
      .catch(this.#faultHandler(reply));
  }

  /** Opens a session here. Its client's next session is opened here too, if it has a home. */
  #openAsHome(home: Home | undefined, lookup: SessionLookup, initialize: Message, reply: Reply): void {
    const claimed = home === undefined ? Promise.resolve() : this.#cluster?.homes.claim(home);
    const opened = claimed?.then(() => this.#openWhenReady(lookup, initialize, reply, opensRemotely));
    opened?.catch(this.#faultHandler(reply));
  }

  /** How to open a session for a client of another instance; undefined if that instance has to open it. */
  #openerOf(key: string, opening: RemoteOpening, initialize: Message): ((reply: Reply) => void) | undefined {
    const { principal } = opening;
    const server = this.#options.currentServer?.(opening.server);
    if (server === undefined || server.digest !== opening.digest) return undefined;
    if (this.#refusalFor({ server, principal }, initialize) !== undefined) return undefined;
    const home = homeOf(server, principal, initialize);
    return (reply) => this.#openAsHome(home, { key, server, principal }, initialize, reply);
  }

  /**
   * Opens a session under an endpoint token (docs/decisions/0018). Its client gets everything, this answer too, on one
   * stream. The reply is `accepted` when the session exists, or `json` with the server's refusal.
   */
  openOneStream(token: string, server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const lookup = { key: keyFromToken(token, principal), server, principal, isOneStream: true };
    this.#openWhenReady(lookup, initialize, reply).catch(this.#faultHandler(reply));
  }

  /**
   * The session with this key, for requests of this principal to this server. To anyone else it does not exist (P11).
   * @param version the protocol revision that the request names, if any
   */
  at(key: string, server: Server, principal: Principal, version: string | undefined): SessionHandle | Reason {
    return this.#find({ key, server, principal, version });
  }

  /** The session under this endpoint token; otherwise like `at`. */
  atToken(token: string, server: Server, principal: Principal, version: string | undefined): SessionHandle | Reason {
    return this.#find({ key: keyFromToken(token, principal), server, principal, version, isOneStream: true });
  }

  /**
   * A session of a group, wherever it is (docs/decisions/0027). `unknown_session` if there is none or if that cannot be
   * known now; `openForGroup` settles it.
   */
  async ofGroup(lookup: SessionLookup): Promise<SessionHandle | Reason> {
    const found = await this.#findAnywhere(lookup);
    return found === 'later' ? 'unknown_session' : found;
  }

  /** Opens a session of a group and answers `initialize`, with `already_initialized` if the session exists by then. */
  openForGroup(lookup: SessionLookup, initialize: Message, reply: Reply): void {
    this.#openWhenReady(lookup, initialize, reply).catch(this.#faultHandler(reply));
  }

  /**
   * Listens to the session that a client is about to open under this endpoint token, on any instance.
   * @param open opens the stream of the reply, as soon as the client may send its first POST
   * @returns the reason if the client may not wait; otherwise the reply is answered, now or later
   */
  listenBeforeOpen(
    token: string,
    server: Server,
    principal: Principal,
    after: EventId,
    reply: Reply,
    open?: () => void,
  ): Reason | undefined {
    const { refusal } = this.#awaited;
    if (refusal !== undefined) return refusal;
    const endWaiting = this.#quotas.admitWaiting(principal);
    if (typeof endWaiting === 'string') return endWaiting;
    const lookup = { key: keyFromToken(token, principal), server, principal, isOneStream: true };
    const withinMs = this.#options.sseLingerMs + server.startTimeoutMs;
    this.#awaited.listen(lookup, withinMs, after, reply, open).catch(this.#faultHandler(reply)).finally(endWaiting);
    return undefined;
  }

  /**
   * Sends a message to a client that listens before it opens its session, on any instance. Returns false if there is no
   * such client.
   */
  tellBeforeOpen(token: string, principal: Principal, text: Buffer): boolean {
    const key = keyFromToken(token, principal);
    if (this.#awaited.tell(key, text)) return true;
    if (this.#cluster === undefined) return false;
    detach('session', this.#options.store.changes.publish(topicOf(key), text));
    return true;
  }

  /**
   * Passes on messages of a client that listens under this endpoint token and sends no `initialize`: the gateway sends
   * one. Clients that reconnect their stream go on so, because they do not know that it is another session.
   */
  postBeforeOpen(token: string, server: Server, principal: Principal, post: EarlyPost, reply: Reply): void {
    const lookup = { key: keyFromToken(token, principal), server, principal, isOneStream: true };
    if (!this.#awaited.has(lookup.key)) return reply.answer(faultAnswer('unknown_session', post.id));
    this.#unopened.post(lookup, post, reply).catch(this.#faultHandler(reply));
  }

  /** Hears what other instances have for a client that waits here. */
  #hearFor(key: string, onMessage: (text: Buffer) => void): Promise<() => void> {
    const listener = { onChange: onMessage, onMissed: (): void => undefined };
    return this.#options.store.changes.subscribe(topicOf(key), listener);
  }

  /** Implements `ProcessCapacity`. */
  acquireProcess(use: ProcessUse, { isAdmitted, isOfRequest }: ProcessPurpose): SessionPermit | Reason {
    const quotas = this.#quotas;
    const quotaRefusal = isOfRequest ? quotas.sessionRefusal(use) : quotas.processRefusal(use);
    const refusal = isAdmitted ? undefined : (quotaRefusal ?? this.#capacityRefusal());
    if (refusal !== undefined) return refusal;
    const permit = isOfRequest ? quotas.acquireSession(use) : quotas.acquireProcess(use);
    this.#processes += 1;
    return {
      started: () => permit.started(),
      ending: () => permit.ending(),
      ended: () => {
        this.#processes -= 1;
        permit.ended();
      },
    };
  }

  /**
   * Ends all sessions (P9). Each ends when no request of it is in flight; after `graceMs` the busy ones end with an
   * error for what they wait for. With a cluster, sessions are released for other instances. Resolves when no backend
   * is left.
   */
  async drain(graceMs: number): Promise<void> {
    this.isDraining = true;
    this.retirements.close();
    this.#sweep.stop();
    this.#awaited.close();
    const reason = this.#cluster === undefined ? 'draining' : 'released';
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    const takeoversEnded = Promise.race([this.#cluster?.directory.settled(), deadline]);
    // Repeated, because a session that was being taken over when the drain began arrives later.
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

  /** A handler that answers the request after a fault of the gateway. */
  #faultHandler(reply: Reply): (cause: unknown) => void {
    return (cause) => {
      this.#options.telemetry.emit({ type: 'store-failed', cause });
      if (!reply.isGone) reply.answer(faultAnswer('internal', null));
    };
  }

  #find(lookup: SessionLookup): SessionHandle | Reason {
    const { key, server, principal, version } = lookup;
    const session = this.#byKey.get(key);
    const isTheirs =
      session?.server.name === server.name && ownsOrShares(session.principal, principal, server.authorizesClients);
    // A session that is not ready is hidden from other requests. A session of another principal is unknown (P11).
    if (!isTheirs || (hasAssignedKey(lookup) && !session.isReady))
      return this.#cluster?.handleOf(lookup) ?? 'unknown_session';
    if (!isRevisionOf(session, version)) return 'unsupported_version';
    return this.#cluster?.guard.handleOf(session) ?? session;
  }

  /** Looks for the session here and on other instances. */
  async #findAnywhere(lookup: SessionLookup): Promise<SessionHandle | Reason | 'later'> {
    if (this.#byKey.get(lookup.key)?.isReady === false) return 'later';
    if (this.#cluster === undefined) return this.#find(lookup);
    const admission = await this.#cluster.directory.admits(lookup);
    if (admission === 'later') return admission;
    return admission === 'yes' ? this.#find(lookup) : admission.fault;
  }

  async #openWhenReady(lookup: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): Promise<void> {
    const cluster = this.#cluster;
    const id = initialize.id ?? null;
    const mayWait = cluster !== undefined && !this.isDraining;
    if (mayWait && !cluster.lease.isHeld && !(await cluster.isReady())) {
      if (!reply.isGone) reply.answer(faultAnswer('store_unavailable', id));
      return;
    }
    // A session can exist already only under a key that was not made here.
    if (hasAssignedKey(lookup) && typeof (await this.#findAnywhere(lookup)) === 'object')
      return reply.answer(faultAnswer('already_initialized', id));
    // The key of a group's session is free once its previous session has ended completely.
    if (lookup.isGroup) await this.#ending.get(lookup.key)?.end('idle');
    if (!reply.isGone) this.#open(lookup, initialize, reply, headers);
  }

  #open(lookup: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): void {
    const { key, server, principal, isOneStream, isGroup, topic } = lookup;
    const isTaken = this.#byKey.has(key) || this.#ending.has(key);
    const refusal = isTaken ? 'already_initialized' : this.#refusalFor({ server, principal }, initialize);
    if (refusal !== undefined) return reply.answer(faultAnswer(refusal, initialize.id ?? null));
    const start = { epoch: Date.now(), initialize: initialize.text, isOneStream, isGroup, topic };
    this.#create(key, server, principal, start).start(reply, headers);
  }

  /** The reason to open no further session here; undefined if one may be opened. */
  #refusalFor(use: SessionUse, initialize: Message): Reason | undefined {
    if (isHandshakeTooLarge(initialize)) return 'initialize_too_large';
    if (this.isDraining) return 'draining';
    if (this.retirements.includes(use.server)) return 'server_reconfigured';
    return this.#quotas.sessionRefusal(use) ?? this.#capacityRefusal();
  }

  #capacityRefusal(): Reason | undefined {
    const count = this.#byKey.size + this.#ending.size + this.connected.size + this.#processes;
    return count < this.#options.maxSessions ? undefined : 'too_many_sessions';
  }

  #adopt(key: string, server: Server, adoption: Adoption): Session {
    const { principal, epoch, initialize } = adoption.record;
    const session = this.#create(key, server, principal, { epoch, initialize, adoption });
    const { emit } = this.#options.telemetry;
    const { calls, lostInstance } = adoption;
    emit({ type: 'session-adopted', name: session.name, pending: calls.length, lostInstance });
    return session;
  }

  #create(key: string, server: Server, principal: Principal, start: SessionStart): Session {
    const { store, telemetry } = this.#options;
    this.#sweep.notice(server.hibernateAfterMs);
    const parts: SessionParts = {
      key,
      server,
      principal,
      store,
      telemetry,
      options: this.#options,
      storeSignal: this.#closing.signal,
      instance: this.#instance,
      isOwner: () => this.#cluster?.guard.covers(session) ?? true,
      permit: this.#quotas.acquireSession({ server, principal }),
    };
    const session: Session = new Session(parts, start, this);
    this.#byKey.set(key, session);
    return session;
  }

  onReady(session: Session): void {
    detach('session', this.#cluster?.opened(session, session.term));
    this.#awaited.notifyOpened(session.key);
  }

  onEnding(session: Session): void {
    const { key, permit } = session;
    if (this.#byKey.get(key) === session) this.#byKey.delete(key);
    this.#ending.set(key, session);
    permit.ending();
    this.#cluster?.guard.release();
  }

  onEnded(session: Session): void {
    if (this.#ending.get(session.key) === session) this.#ending.delete(session.key);
    session.permit.ended();
  }

  #endIfDue(session: Session): void {
    session.endOverdueCalls();
    const { sseLingerMs, sessionIdleMs, abandonedMs } = this.#options;
    if (session.idleness.isDesertedSince(sseLingerMs)) detach('session', session.end('client_gone'));
    else if (session.idleness.isIdleSince(sessionIdleMs)) detach('session', session.end('idle'));
    else session.hibernateIfUnused();
    session.leaveIfAbandoned(abandonedMs);
  }

  #endOverdue(): void {
    for (const session of this.all) {
      const endAsInternal = (): void => detach('session', session.end('internal'));
      contain('session', () => this.#endIfDue(session), endAsInternal);
    }
    this.#recordRenewal.renewDue(this.#byKey);
  }
}

/** The topic of messages for a client that waits for its session. */
const topicOf = (key: string): string => `awaited ${key}`;

/** What names the instance to which a client comes back. */
type Home = readonly string[];

/** See `Server.homeOf`. Instances with another configuration have other homes. */
function homeOf(server: Server, principal: Principal, initialize: Message): Home | undefined {
  const home = server.homeOf?.(principal, initialize);
  return home && ['home', server.name, server.digest, ...home];
}
