// The registry: finds, opens, retires and drains the sessions of this instance, and finds those of other instances.

import { randomBytes } from 'node:crypto';
import type { Reason } from '../protocol/faults.ts';
import { isHandshakeTooLarge } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message/message.ts';
import { ownsOrShares, type Principal } from '../protocol/principal.ts';
import { Quotas, type QuotaUse } from '../quota/quotas.ts';
import type { SessionPermit } from '../quota/session-permit.ts';
import { ForwardingReply } from '../reply/forwarding-reply.ts';
import { type CompleteAnswer, type EventSink, faultAnswer, type Headers, type Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { SessionEndReason } from '../session/end-reason.ts';
import { isRevisionOf, type SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import { Session, type SessionHost } from '../session/session.ts';
import type { SessionStart } from '../session/session-core.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import { keyFromId } from '../session/session-key.ts';
import { type SessionOptions, type SessionParts, singleInstance } from '../session/session-options.ts';
import type { Store } from '../store/store.ts';
import { ifUnavailable } from '../store/store-unavailable.ts';
import { contain, detach } from '../util/boundary.ts';
import { ConnectedClients } from './connected-clients.ts';
import { endInOrder, Retirements } from './retirement.ts';
import type { ClusterHost, RemoteOpening, SessionCluster } from './session-cluster.ts';
import { RecordRenewal, Sweep } from './upkeep.ts';

/** A call without a reader need not be found sooner, in milliseconds. */
const leastUnreadMs = 20_000;

/**
 * Whether new sessions are welcome. `degraded`: the shared store does not answer, but may at any moment. `unavailable`:
 * it has not answered for a whole lease beyond the one that was held.
 */
export type Readiness = 'ready' | 'degraded' | 'unavailable' | 'draining';

/** How an instance joins those that share its store. */
export interface ClusterOfSessions {
  /** See `ClusterLimits`. */
  readonly leaseMs: number;
  create(host: ClusterHost): SessionCluster;
}

/** Options shared by the sessions of an instance. */
export interface SessionsOptions extends SessionOptions {
  readonly store: Store;
  readonly telemetry: SessionTelemetry;
  readonly maxSessions: number;
  /** How long the store keeps a session that is not renewed, in milliseconds. */
  readonly recordTtlMs: number;
  readonly sessionIdleMs: number;
  /** How long a session keeps its process after its client closed the GET stream; see `Session.endOverdue`. */
  readonly abandonedMs: number;
  /** The store of the sessions of connections, which belongs to this instance alone, and the most bytes of one event. */
  readonly connections: { readonly store: Store; readonly maxEventBytes: number };
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
export class Sessions implements SessionHost {
  /** The clients whose messages come beside the connections with which their sessions live. */
  readonly clients: ConnectedClients;
  /** Ends the sessions of servers that were removed or reconfigured. */
  readonly retirements: Retirements;
  /** The instances that share the store; undefined if no other one can. */
  readonly cluster: SessionCluster | undefined;
  readonly #options: SessionsOptions;
  readonly #quotas: Quotas;
  readonly #byKey = new Map<string, Session>();
  /** Sessions that live with one connection of their client; see `openConnected`. */
  readonly #connected = new Map<Session, (reason: SessionEndReason) => void>();
  /** Sessions that can no longer be used but whose backend or record may still be ending. */
  readonly #ending = new Map<string, Session>();
  /** Number of processes that belong to no session. */
  #processes = 0;
  readonly #sweep = new Sweep(() => this.#endOverdue());
  readonly #closing = new AbortController();
  readonly #instance: SessionParts['instance'] = () => this.cluster?.lease ?? singleInstance;
  /** What all sessions of connections have. */
  readonly #ofConnections: Pick<SessionParts, 'instance' | 'store' | 'options'>;
  /** True once `drain` was called: no new sessions. */
  isDraining = false;
  readonly #recordRenewal: RecordRenewal;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#quotas = options.quotas ?? new Quotas();
    const { cluster, store, sessionIdleMs, abandonedMs, requestIdleMs, requestTotalMs, unreadMs } = options;
    // A single instance needs this too: the memory store also forgets a session that is not renewed.
    this.#recordRenewal = new RecordRenewal(store, options.recordTtlMs, options.telemetry.emit);
    const shortestMs = Math.min(sessionIdleMs, abandonedMs, requestIdleMs, requestTotalMs);
    this.#sweep.notice(Math.min(shortestMs, this.#recordRenewal.everyMs));
    // Not more often than it matters: each sweep looks at all sessions.
    if (unreadMs !== undefined) this.#sweep.notice(Math.max(unreadMs, leastUnreadMs));
    const { store: ownStore, maxEventBytes } = options.connections;
    this.#ofConnections = { instance: () => singleInstance, store: ownStore, options: { ...options, maxEventBytes } };
    this.retirements = new Retirements(
      () => [...this.#byKey.values(), ...this.#ending.values(), ...this.#connected.keys()],
      cluster !== undefined,
    );
    this.cluster = cluster?.create({
      currentServer: (name) => options.currentServer?.(name),
      formerServer: (name, digest) => options.formerServer?.(name, digest),
      sessions: () => this.#byKey.values(),
      find: (key) => this.#byKey.get(key),
      findConnected: (key) => this.clients.handleOf(key),
      adopt: (key, server, adoption) => this.#adopt(key, server, adoption),
      openerOf: (key, opening, initialize) => this.#openerOf(key, opening, initialize),
      homeTtlMs: options.recordTtlMs,
      mayAdopt: () => !this.isDraining,
      findEnding: (key) => this.#ending.get(key),
      telemetry: options.telemetry,
    });
    this.clients = new ConnectedClients(this.#quotas, options.maxSessions, this.cluster);
  }

  /** The sessions that can be used here. */
  get all(): readonly Session[] {
    return [...this.#byKey.values(), ...this.#connected.keys()];
  }

  /** The number of the sessions that can be used here. */
  get count(): number {
    return this.#byKey.size + this.#connected.size;
  }

  /** The number of those that outlive their connection, so that the store has them. */
  get resumableCount(): number {
    return this.#byKey.size;
  }

  /** Whether new sessions are welcome. */
  get readiness(): Readiness {
    const lease = this.cluster?.lease;
    if (this.isDraining) return 'draining';
    if (lease === undefined || lease.isHeld) return 'ready';
    return lease.unconfirmedMs < 2 * (this.#options.cluster?.leaseMs ?? 0) ? 'degraded' : 'unavailable';
  }

  /** Opens a session for a client's `initialize` and answers it. */
  open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const id = newId();
    const lookup = { key: keyFromId(id), server, principal };
    const headers = { [idHeader]: id };
    const home = this.cluster && homeOf(server, principal, initialize);
    const isElsewhere = home !== undefined || (this.cluster !== undefined && this.isDraining);
    if (isElsewhere) this.#openElsewhere(home, lookup, initialize, new OpeningReply(reply, headers));
    else this.#openWhenReady(lookup, initialize, reply, headers).catch(this.#faultHandler(reply));
  }

  /**
   * Opens a session where its client finds the processes of its last session (docs/decisions/0105). While this instance
   * stops, another one opens it.
   */
  #openElsewhere(home: readonly string[] | undefined, lookup: SessionLookup, initialize: Message, reply: Reply): void {
    const { directory, homes, requests } = this.cluster as SessionCluster;
    const openHere = (to: Reply): void => this.#openAsHome(home, lookup, initialize, to);
    const findInstance = async (): Promise<string | undefined> =>
      (home && (await homes.find(home).catch(ifUnavailable(undefined)))) ??
      (this.isDraining ? directory.findSuccessor() : undefined);
    findInstance()
      .then((instance) => {
        if (reply.isGone) return;
        if (instance === undefined) openHere(reply);
        else requests.openAt(instance, lookup, initialize, reply, openHere);
      })
      .catch(this.#faultHandler(reply));
  }

  /** Opens a session here. Its client's next session is opened here too, if it has a home. */
  #openAsHome(home: readonly string[] | undefined, lookup: SessionLookup, initialize: Message, reply: Reply): void {
    const claimed = home === undefined ? Promise.resolve() : this.cluster?.homes.claim(home);
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
   * The session that a request names, wherever it is. To anyone but its principal it does not exist (P11). If it is not
   * here, the requests to it find out where it is.
   */
  anywhere(lookup: SessionLookup): SessionHandle | Reason {
    const session = this.#here(lookup);
    if (session === undefined) return this.cluster?.requests.handleOf(lookup) ?? 'unknown_session';
    if (!isRevisionOf(session, lookup.version)) return 'unsupported_version';
    return this.cluster?.guard.handleOf(session) ?? session;
  }

  /**
   * As `anywhere`, for a key that may have no session yet (docs/decisions/0027). `unknown_session` if there is none or if
   * that cannot be known now; `openForGroup` settles it.
   */
  async ofGroup(lookup: SessionLookup): Promise<SessionHandle | Reason> {
    if (this.#byKey.get(lookup.key)?.isReady === false) return 'unknown_session';
    const admission = await this.cluster?.directory.admits(lookup);
    if (admission === 'later') return 'unknown_session';
    return typeof admission === 'object' ? admission.fault : this.anywhere(lookup);
  }

  /** Opens a session of a group and answers `initialize`, with `already_initialized` if the session exists by then. */
  openForGroup(lookup: SessionLookup, initialize: Message, reply: Reply): void {
    this.#openWhenReady(lookup, initialize, reply).catch(this.#faultHandler(reply));
  }

  /**
   * Opens a session that lives and dies with one connection of its client (docs/decisions/0195). The client gets
   * everything, this answer too, on its one stream. No other instance and no shared store knows the session, and no request
   * can name it. The holder of the connection ends it.
   * @param reply is answered `accepted` once the session can be listened to
   * @param onEnding called when the session is ending; its last messages to the client follow
   * @returns undefined if the session was refused; the reply then has the fault
   */
  openConnected(
    use: Pick<SessionLookup, 'server' | 'principal'>,
    initialize: Message,
    reply: Reply,
    onEnding: (reason: SessionEndReason) => void,
  ): Session | undefined {
    const refusal = this.#refusalFor(use, initialize);
    if (refusal !== undefined) {
      reply.answer(faultAnswer(refusal, initialize.id ?? null));
      return undefined;
    }
    const start = { epoch: Date.now(), initialize: initialize.text, isOneStream: true };
    const session = this.#create(keyFromId(newId()), use.server, use.principal, start);
    this.#connected.set(session, onEnding);
    session.start(reply);
    return session;
  }

  /**
   * Admits a process beside the sessions, which counts as one session towards the limit of this instance.
   * @param isAdmitted true if the process is for a session that was counted with a process. It is then never refused.
   * @returns the permit of the process, or the reason if the process is refused
   */
  acquireProcess(use: QuotaUse, isAdmitted: boolean): SessionPermit | Reason {
    const refusal = isAdmitted ? undefined : (this.#quotas.refusalOf(use) ?? this.#capacityRefusal());
    if (refusal !== undefined) return refusal;
    this.#processes += 1;
    return this.#quotas.acquire(use, () => {
      this.#processes -= 1;
    });
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
    this.clients.close();
    const reason = this.cluster === undefined ? 'draining' : 'released';
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    const takeoversEnded = Promise.race([this.cluster?.directory.settled(), deadline]);
    // Repeated, because a session that was being taken over when the drain began arrives later.
    do {
      await Promise.all([
        ...Array.from(this.#byKey.values(), (session) => endInOrder(session, reason, deadline)),
        ...Array.from(this.#connected.keys(), (session) => endInOrder(session, 'draining', deadline)),
        takeoversEnded,
      ]);
    } while (this.#byKey.size > 0);
    await this.cluster?.requests.leave(deadline);
    clearTimeout(timer);
    this.#closing.abort();
    await Promise.all(Array.from(this.#ending.values(), (session) => session.end('draining')));
    await this.cluster?.close();
  }

  /** A handler that answers the request after a fault of the gateway. */
  #faultHandler(reply: Reply): (cause: unknown) => void {
    return (cause) => {
      this.#options.telemetry.emit({ type: 'store-failed', cause });
      if (!reply.isGone) reply.answer(faultAnswer('internal', null));
    };
  }

  /** The session of this instance that a request names; undefined if it is not here, or not the client's. */
  #here({ key, server, principal, isGroup }: SessionLookup): Session | undefined {
    const session = this.#byKey.get(key);
    const isTheirs =
      session?.server.name === server.name && ownsOrShares(session.principal, principal, server.authorizesClients);
    // A session of a group that is not ready is hidden from other requests.
    return isTheirs && (!isGroup || session.isReady) ? session : undefined;
  }

  async #openWhenReady(lookup: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): Promise<void> {
    const cluster = this.cluster;
    const id = initialize.id ?? null;
    const mayWait = cluster !== undefined && !this.isDraining;
    if (mayWait && !cluster.lease.isHeld && !(await cluster.lease.isReady())) {
      if (!reply.isGone) reply.answer(faultAnswer('store_unavailable', id));
      return;
    }
    // Only the key of a group may have a session already: it is not made for one session.
    if (lookup.isGroup && typeof (await this.ofGroup(lookup)) === 'object')
      return reply.answer(faultAnswer('already_initialized', id));
    // The key of a group's session is free once its previous session has ended completely.
    if (lookup.isGroup) await this.#ending.get(lookup.key)?.end('idle');
    if (!reply.isGone) this.#open(lookup, initialize, reply, headers);
  }

  #open(lookup: SessionLookup, initialize: Message, reply: Reply, headers?: Headers): void {
    const { key, server, principal, isGroup, topic } = lookup;
    const isTaken = this.#byKey.has(key) || this.#ending.has(key);
    const refusal = isTaken ? 'already_initialized' : this.#refusalFor({ server, principal }, initialize);
    if (refusal !== undefined) return reply.answer(faultAnswer(refusal, initialize.id ?? null));
    const start = { epoch: Date.now(), initialize: initialize.text, isGroup, topic };
    const session = this.#create(key, server, principal, start);
    this.#byKey.set(key, session);
    session.start(reply, headers);
  }

  /** The reason to open no further session here; undefined if one may be opened. */
  #refusalFor(use: QuotaUse, initialize: Message): Reason | undefined {
    if (isHandshakeTooLarge(initialize)) return 'initialize_too_large';
    if (this.isDraining) return 'draining';
    if (this.retirements.includes(use.server)) return 'server_reconfigured';
    return this.#quotas.refusalOf(use) ?? this.#capacityRefusal();
  }

  #capacityRefusal(): Reason | undefined {
    const count = this.#byKey.size + this.#ending.size + this.#connected.size + this.#processes;
    return count < this.#options.maxSessions ? undefined : 'too_many_sessions';
  }

  #adopt(key: string, server: Server, adoption: Adoption): Session {
    const { principal, epoch, initialize } = adoption.record;
    const session = this.#create(key, server, principal, { epoch, initialize, adoption });
    this.#byKey.set(key, session);
    const { emit } = this.#options.telemetry;
    const { calls, lostInstance } = adoption;
    emit({ type: 'session-adopted', name: session.name, pending: calls.length, lostInstance });
    return session;
  }

  #create(key: string, server: Server, principal: Principal, start: SessionStart): Session {
    const { store, telemetry } = this.#options;
    this.#sweep.notice(server.hibernateAfterMs);
    const shared = { store, options: this.#options, instance: this.#instance };
    const parts: SessionParts = {
      key,
      server,
      principal,
      telemetry,
      storeSignal: this.#closing.signal,
      permit: this.#quotas.acquire({ server, principal }),
      ...(start.isOneStream
        ? this.#ofConnections
        : { ...shared, isOwner: () => this.cluster?.guard.covers(session) ?? true }),
    };
    const session: Session = new Session(parts, start, this);
    return session;
  }

  onReady(session: Session): void {
    if (!this.#connected.has(session)) detach('session', this.cluster?.guard.opened(session, session.term));
  }

  onEnding(session: Session, reason: SessionEndReason): void {
    const { key, parts } = session;
    const onEnding = this.#connected.get(session);
    this.#connected.delete(session);
    if (this.#byKey.get(key) === session) this.#byKey.delete(key);
    this.#ending.set(key, session);
    parts.permit.ending();
    onEnding?.(reason);
    this.cluster?.guard.release();
  }

  onEnded(session: Session): void {
    if (this.#ending.get(session.key) === session) this.#ending.delete(session.key);
    session.parts.permit.ended();
  }

  #endOverdue(): void {
    const { sessionIdleMs, abandonedMs } = this.#options;
    for (const session of this.all) {
      const endAsInternal = (): void => detach('session', session.end('internal'));
      contain('session', () => session.endOverdue(sessionIdleMs, abandonedMs), endAsInternal);
    }
    this.#recordRenewal.renewDue(this.#byKey);
  }
}

/** A new id of a session, which only its client learns. */
const newId = (): string => randomBytes(32).toString('base64url');

/** See `Server.homeOf`. Instances with another configuration have other homes. */
function homeOf(server: Server, principal: Principal, initialize: Message): readonly string[] | undefined {
  const home = server.homeOf?.(principal, initialize);
  return home && ['home', server.name, server.digest, ...home];
}

/** The header in which a client learns the id of its session. */
export const idHeader = 'mcp-session-id';

/** The headers of a session that is opened for a client of another instance, which alone knows the id. */
const opensRemotely: Headers = { [idHeader]: '' };

/** The answer to an `initialize` that any instance may serve. Only this instance knows the id of the session (P12). */
class OpeningReply extends ForwardingReply {
  readonly #headers: Headers;

  /** @param headers of a successful answer */
  constructor(reply: Reply, headers: Headers) {
    super(reply);
    this.#headers = headers;
  }

  override answer(answer: CompleteAnswer): void {
    this.reply.answer(answer.kind === 'json' ? { ...answer, headers: this.#own(answer.headers) } : answer);
  }

  override stream(headers?: Headers): EventSink {
    return this.reply.stream(this.#own(headers));
  }

  #own(headers: Headers | undefined): Headers | undefined {
    return headers?.[idHeader] === undefined ? headers : this.#headers;
  }
}
