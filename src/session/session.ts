// Session: one legacy client and its backend, with its requests, event streams, restores and record.

import { type Handshake, readHandshake } from '../protocol/handshake.ts';
import { sessionRevision } from '../protocol/known-revisions.ts';
import type { Principal } from '../protocol/principal.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import { faultAnswer, type Headers, type Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { Registration } from '../store/session-records.ts';
import { detach } from '../util/boundary.ts';
import { SessionProcessHolder } from './backend/holder.ts';
import { endCall, isFinal, mayKeepProcess, type SessionEndReason } from './end-reason.ts';
import { Idleness } from './idleness.ts';
import { SessionPipeline } from './pipeline.ts';
import type { Adoption } from './record/adoption.ts';
import { TakeoverProof } from './record/takeover-proof.ts';
import { type ContextOwner, SessionContext, type SessionStart } from './session-context.ts';
import type { HibernationReason, SessionName } from './session-events.ts';
import type { ClientPost, SessionHandle } from './session-handle.ts';
import type { SessionParts, SessionUsage } from './session-options.ts';
import { type SessionSnapshot, snapshotSession } from './session-snapshot.ts';

/** The table that a session is in. */
export interface SessionHost {
  /** The server has answered `initialize`, and the record exists. */
  onReady(session: Session): void;
  /** The session can no longer be used; its parts are still ending. */
  onEnding(session: Session, reason: SessionEndReason): void;
  /** Nothing of the session is left. */
  onEnded(session: Session): void;
}

/**
 * One client of a legacy revision and its backend, from `initialize` or a takeover until the end. The session owns the
 * record and the end; its `SessionPipeline` carries the messages.
 */
export class Session implements SessionHandle, ContextOwner {
  readonly key: string;
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  /** The term of this instance when the session was made. */
  readonly term: number;
  readonly principal: Principal;
  readonly server: Server;
  readonly name: SessionName;
  /** True if the gateway opened the session for modern clients. */
  readonly isOfGroup: boolean;
  readonly idleness: Idleness;
  readonly #context: SessionContext;
  readonly #pipeline: SessionPipeline;
  readonly #host: SessionHost;
  #ending: Promise<void> | undefined;
  #recordRemoved: Promise<void> | undefined;

  constructor(parts: SessionParts, start: SessionStart, host: SessionHost) {
    const { key, server, principal } = parts;
    const context = new SessionContext(parts, start, this);
    this.key = key;
    this.epoch = start.epoch;
    this.term = parts.instance().term;
    this.principal = principal;
    this.server = server;
    this.name = context.name;
    this.isOfGroup = context.policy.isShared;
    this.#host = host;
    this.#context = context;
    this.#pipeline = new SessionPipeline(context);
    this.idleness = new Idleness(context, this.#pipeline);
    if (!context.policy.isShared) context.holder = new SessionProcessHolder(context, this.#pipeline, this.idleness);
    if (start.adoption !== undefined) this.#adopt(start.adoption);
  }

  /** The resources that the session holds of its principal's quotas. */
  get permit(): SessionUsage {
    return this.#context.parts.permit;
  }

  /**
   * The negotiated revision. Before the answer to `initialize`, this is the revision that the specification assumes.
   */
  get protocolVersion(): string {
    return this.#context.protocolVersion;
  }

  /** Opens a backend, passes the client's `initialize` on and answers it; `headers` go out with a successful answer. */
  start(reply: Reply, headers?: Headers): void {
    const context = this.#context;
    reply.onGone(() => {
      if (context.handshake === undefined) context.end('client_gone');
    });
    this.noteActivity(reply);
    this.#pipeline.opening.start(reply, headers);
  }

  /** Passes the messages of one POST to the server and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    this.noteActivity(reply);
    if (post.isBatch && !sessionRevision(this.protocolVersion).allowsBatches)
      return reply.answer(faultAnswer('batch_not_allowed', null));
    this.#pipeline.requests.post(post, reply);
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void {
    const { streams } = this.#pipeline.delivery;
    this.noteActivity(reply);
    if (lastEventId === undefined) streams.listen(reply);
    else detach('session', streams.resume(reply, lastEventId), () => reply.answer(faultAnswer('internal', null)));
  }

  /** Ends an unused backend until the next message, if its server is configured so (docs/decisions/0045). */
  hibernateIfUnused(): void {
    const { hibernateAfterMs } = this.server;
    if (hibernateAfterMs === undefined || !this.isReady || !this.idleness.isUnusedSince(hibernateAfterMs)) return;
    this.#hibernate('idle');
  }

  /**
   * Frees the process of a session whose client has closed its GET stream and has not come back for this long. The
   * session hibernates. It ends if its server must not be restored, because its client must then learn of the loss.
   */
  leaveIfAbandoned(ms: number): void {
    const { isRemote, onBackendExit, processes = isRemote ? 0 : 1 } = this.server;
    if (processes === 0 || !this.isReady || !this.idleness.isAbandonedSince(ms)) return;
    if (onBackendExit === 'end') detach('session', this.end('client_gone'));
    else this.#hibernate('abandoned', true);
  }

  #hibernate(reason: HibernationReason, mayKeepProcess = false): void {
    this.#pipeline.supervisor.hibernate(mayKeepProcess);
    this.#context.parts.telemetry.emit({ type: 'session-hibernated', name: this.name, reason });
  }

  /**
   * The store has been away for longer than a lease, and another instance may own the session. Clients that wait for
   * answers continue elsewhere, or get a fault (P3).
   * @param openForMs connections that are younger are left alone
   */
  detachClients(openForMs: number): void {
    this.#pipeline.detachClients(openForMs);
  }

  /** Ends calls that take too long. */
  endOverdueCalls(): void {
    this.#pipeline.requests.endOverdue();
  }

  /** The view of this session for operators. */
  get snapshot(): SessionSnapshot {
    return snapshotSession(this.#context, this.#pipeline, {
      startedAt: this.#pipeline.opening.startedAt,
      lastActivityAt: this.idleness.lastActivityAt,
    });
  }

  /** Resolves when no request is in flight, `initialize` neither, and no task unfinished. */
  async whenIdle(): Promise<void> {
    await this.idleness.whenIdle();
    await this.#pipeline.opening.whenCompleted();
  }

  /** True from the answer to `initialize` until the session ends. Only then other requests may see the session. */
  get isReady(): boolean {
    const { handshake, endReason } = this.#context;
    return handshake !== undefined && endReason === undefined; // set before any listener learns of the end
  }

  /** True until the answer to `initialize`. No other instance can know the session, unless its key was not made here. */
  get isOpening(): boolean {
    const { handshake, endReason } = this.#context;
    return handshake === undefined && endReason === undefined;
  }

  /** True if a client has no event id on its stream yet, and so could not continue elsewhere. */
  get hasUnresumableClients(): boolean {
    return this.#pipeline.delivery.streams.hasUnresumableClients;
  }

  /**
   * True if the session ended for good rather than being handed over. False if it never opened: then it says nothing
   * about its key.
   */
  get leavesNoRecord(): boolean {
    const { handshake, endReason } = this.#context;
    const isKept = endReason === 'moved' || endReason === 'released';
    return handshake !== undefined && endReason !== undefined && !isKept;
  }

  ready(): void {
    this.#host.onReady(this);
  }

  /** Registers the session and the state of its log again; see `SessionRecords.register`. */
  register(): Promise<Registration> {
    return this.#pipeline.delivery.register();
  }

  /** The session was registered in a new term. Events that the log had confirmed may be lost. */
  check(): void {
    this.#pipeline.delivery.check();
  }

  /**
   * Ends the session here: answers open requests, closes streams and the backend, and removes the record. A `released`
   * session keeps its record for other instances, and a `moved` one leaves the record alone. Idempotent.
   */
  end(reason: SessionEndReason): Promise<void> {
    this.#context.endReason ??= reason;
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  /** As `end`. Answers when no instance knows the session any more; the backend may still be ending. */
  remove(reply: Reply): void {
    this.noteActivity(reply);
    detach('session', this.end('deleted'));
    detach(
      'session',
      this.#recordRemoved?.then(() => reply.answer({ kind: 'removed' })),
    );
  }

  async #end(reason: SessionEndReason): Promise<void> {
    const context = this.#context;
    const { telemetry } = context.parts;
    this.#host.onEnding(this, reason);
    context.proof?.end();
    const mayBeKept = mayKeepProcess.has(reason) && !this.idleness.hasUnfinishedTasks;
    // The end does not wait longer for the store: a session can end also while the store is away.
    context.stopStoreAfter(context.limits.storeWaitMs);
    this.#pipeline.close(reason);
    for (const call of context.calls.takeAll()) endCall(call, reason);
    if (reason === 'moved') this.#pipeline.delivery.abandon();
    this.#recordRemoved = this.#runStep(
      reason === 'moved' ? undefined : () => this.#pipeline.delivery.close(reason === 'released'),
    ).then(() => this.#runStep(this.#recordStep(reason)));
    await this.#recordRemoved.then(() =>
      this.#runStep(() => this.#pipeline.supervisor.close({ isForGood: isFinal.has(reason), mayBeKept })),
    );
    context.stopStore();
    const { dropped } = context;
    const { refusalCode: errorCode } = this.#pipeline.opening;
    telemetry.emit({ type: 'session-ended', name: this.name, reason, dropped, errorCode });
    this.#host.onEnded(this);
  }

  #recordStep(reason: SessionEndReason): (() => Promise<void>) | undefined {
    const { handshake, record } = this.#context;
    if (reason === 'moved' || handshake === undefined) return undefined;
    return () => (reason === 'released' ? record.release() : record.end());
  }

  /** A failed step of the end must not block the next steps, or a drain waits for ever. */
  async #runStep(step: (() => Promise<void>) | undefined): Promise<void> {
    await step?.().catch((cause: unknown) => this.#context.report(cause));
  }

  /** The client has sent something. The gateway's own messages carry its forwarded headers from now on. */
  noteActivity({ request: { forwarded }, isContinued }: Reply): void {
    this.idleness.noteActivity();
    // A stream that continues after an owner change is no activity: its client opened it long ago.
    if (forwarded !== undefined && !isContinued) this.#pipeline.supervisor.rememberHeaders(forwarded);
  }

  #adopt(adoption: Adoption): void {
    const context = this.#context;
    context.protocolVersion = adoption.record.protocolVersion;
    context.record.adopt(adoption.record);
    this.#pipeline.adopt(adoption, readHandshake(adoption.record.initialized) as Handshake);
    context.proof = new TakeoverProof({
      isServerUp: () => this.#pipeline.supervisor.state !== 'restoring',
      confirm: () => detach('session', context.record.progress()),
    });
  }
}
