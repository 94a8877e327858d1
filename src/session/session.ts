// Session: one legacy client and its backend, with its requests, event streams, restores and record.

import { type Call, failCall } from '../call/call-table.ts';
import type { OpeningAnswer } from '../call/legacy-answer.ts';
import { type Handshake, isAnswerTooLarge, readHandshake } from '../protocol/handshake.ts';
import { errorCodeIn } from '../protocol/json/splice.ts';
import { type Message, readGatewayMessage } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import { allowsBatches, assumedRevision } from '../protocol/revisions.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { Headers, Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import { type Registration, SessionExists } from '../store/session-records.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { endCall, faultBeforeStart, isFinal, type SessionEndReason } from './end-reason.ts';
import type { WriteRefusal } from './events/event-writer.ts';
import { Idleness } from './idleness.ts';
import { hasAssignedKey } from './lookup.ts';
import { SessionPipeline } from './pipeline.ts';
import type { Adoption } from './record/adoption.ts';
import { type ClientKind, ClientState } from './record/client-state.ts';
import { SessionRecordKeeper } from './record/record.ts';
import { TakeoverProof } from './record/takeover-proof.ts';
import { UsedScopes } from './record/used-scopes.ts';
import { reportFailure, type SessionName, sessionName } from './session-events.ts';
import type { ClientPost, SessionHandle } from './session-handle.ts';
import type { SessionParts } from './session-options.ts';
import { type SessionSnapshot, snapshotSession } from './session-snapshot.ts';

/** How a session begins: with a client's `initialize`, or with the state of an earlier owner. */
export interface SessionStart extends ClientKind {
  readonly epoch: number;
  /** The client's request, as it was sent. */
  readonly initialize: Buffer;
  readonly adoption?: Adoption;
}

/**
 * One client of a legacy revision and its backend, from `initialize` or a takeover until the end. The session owns the
 * record and the end; its `SessionPipeline` carries the messages.
 */
export class Session implements SessionHandle {
  readonly key: string;
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  readonly principal: Principal;
  readonly server: Server;
  readonly name: SessionName;
  /** True if the gateway opened the session for modern clients. */
  readonly isOfGroup: boolean;
  readonly idleness: Idleness;
  /**
   * The negotiated revision. Before the answer to `initialize`, this is the revision that the specification assumes.
   */
  protocolVersion: string = assumedRevision;
  readonly #parts: SessionParts;
  readonly #client: ClientState;
  readonly #pipeline: SessionPipeline;
  readonly #record: SessionRecordKeeper;
  readonly #usedScopes: UsedScopes;
  /** Aborted when the store is no longer used. */
  readonly #storeAbort = new AbortController();
  readonly #startedAt = performance.now();
  /** The server has answered `initialize`, and the record exists. */
  #isOpen = false;
  /** Set for a session that was taken over. */
  #proof: TakeoverProof | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #ending: Promise<void> | undefined;
  /** The error code with which the server refused `initialize`. */
  #refusalCode: number | undefined;
  #endReason: SessionEndReason | undefined;
  #recordRemoved: Promise<void> | undefined;

  constructor(parts: SessionParts, start: SessionStart) {
    const { key, server, principal, store, instance, storeSignal } = parts;
    const { epoch, initialize, adoption } = start;
    this.key = key;
    this.epoch = epoch;
    this.principal = principal;
    this.server = server;
    this.name = sessionName(key, server.name);
    this.#parts = parts;
    this.#client = new ClientState(initialize, adoption?.record, start);
    this.isOfGroup = this.#client.isGroup;
    this.#record = new SessionRecordKeeper({
      sessions: store.sessions,
      key,
      server,
      principal,
      epoch,
      client: this.#client,
      instance,
      signal: this.#storeAbort.signal,
      endSignal: storeSignal,
      onFailed: (cause) => this.#report(cause),
    });
    this.#usedScopes = new UsedScopes({
      names: this.#client.usedScopes,
      amend: () => this.#record.amended(),
      register: () => this.register(),
      waitMs: parts.options.storeWaitMs,
      onAdmitted: (reply) => this.#noteActivity(reply),
      endFault: () => this.#endReason && faultBeforeStart(this.#endReason),
    });
    this.#pipeline = new SessionPipeline({
      parts,
      name: this.name,
      epoch,
      client: this.#client,
      adoption,
      signal: this.#storeAbort.signal,
      protocolVersion: () => this.protocolVersion,
      onInitialized: (answer, call, response) =>
        detach('session', this.#onInitialized(answer, call, response), () => this.end('internal')),
      onClientChanged: () => this.#record.amend(),
      register: () => this.register(),
      onRefused: (why, cause) => this.#onRefused(why, cause),
      onAnswered: () => this.#proof?.confirm(),
      onOver: (reason) => detach('session', this.end(reason)),
    });
    this.idleness = new Idleness(this.#client, this.#pipeline);
    if (adoption !== undefined) this.#adopt(adoption);
  }

  /** Opens a backend, passes the client's `initialize` on and answers it; `headers` go out with a successful answer. */
  start(reply: Reply, headers?: Headers): void {
    reply.onGone(() => {
      if (!this.#isOpen) detach('session', this.end('client_gone'));
    });
    this.#startTimer = setTimeout(
      () => detach('session', this.end('server_start_timeout')),
      this.server.startTimeoutMs,
    );
    this.#usedScopes.begin(reply.needs);
    this.#noteActivity(reply);
    this.#pipeline.start(readGatewayMessage(this.#client.initialize), reply, headers);
  }

  /** Passes the messages of one POST to the server and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    this.#usedScopes.admit(reply, post, () => {
      if (post.isBatch && !allowsBatches(this.protocolVersion)) return reply.fault('batch_not_allowed', null);
      this.#pipeline.requests.post(post, reply);
    });
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void {
    const { streams } = this.#pipeline.delivery;
    this.#usedScopes.admit(reply, undefined, () => {
      if (lastEventId === undefined) streams.listen(reply);
      else detach('session', streams.resume(reply, lastEventId), () => reply.fault('internal', null));
    });
  }

  /** Ends an unused backend until the next message, if its server is configured so (docs/decisions/0045). */
  hibernateIfUnused(): void {
    const { hibernateAfterMs } = this.server;
    if (hibernateAfterMs === undefined || !this.isReady || !this.idleness.isUnusedSince(hibernateAfterMs)) return;
    this.#pipeline.supervisor.hibernate();
    this.#parts.telemetry.emit({ type: 'session-hibernated', name: this.name });
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
    return snapshotSession(this.#client, this.#pipeline, {
      startedAt: this.#startedAt,
      lastActivityAt: this.idleness.lastActivityAt,
    });
  }

  /** Resolves when no request is in flight, and no task unfinished. */
  whenIdle(): Promise<void> {
    return this.#pipeline.activity.whenIdle();
  }

  /** The scopes that its requests needed. A request with fewer must not use the session. */
  get usedScopes(): ReadonlySet<string> {
    return this.#usedScopes.stored;
  }

  /** True from the answer to `initialize` until the session ends. Only then other requests may see the session. */
  get isReady(): boolean {
    return this.#isOpen && this.#endReason === undefined; // set before any listener learns of the end
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
    const isKept = this.#endReason === 'moved' || this.#endReason === 'released';
    return this.#isOpen && this.#endReason !== undefined && !isKept;
  }

  /** Registers the session and the state of its log again; see `SessionRecords.register`. */
  register(): Promise<Registration> {
    const { tail, log } = this.#pipeline.delivery.recoveryState;
    return this.#record.register(tail, log);
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
    this.#endReason ??= reason;
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  /** As `end`. Answers when no instance knows the session any more; the backend may still be ending. */
  remove(reply: Reply): void {
    this.#usedScopes.admit(reply, undefined, () => {
      detach('session', this.end('deleted'));
      detach(
        'session',
        this.#recordRemoved?.then(() => reply.removed()),
      );
    });
  }

  async #end(reason: SessionEndReason): Promise<void> {
    const { telemetry, onEnding, onEnded, options } = this.#parts;
    onEnding(reason);
    clearTimeout(this.#startTimer);
    this.#proof?.end();
    // The end does not wait longer for the store: a session can end also while the store is away.
    setTimeout(() => this.#storeAbort.abort(), options.storeWaitMs).unref();
    this.#pipeline.close();
    for (const call of this.#pipeline.calls.takeAll()) endCall(call, reason);
    if (reason === 'moved') this.#pipeline.delivery.abandon();
    this.#recordRemoved = this.#runStep(
      reason === 'moved' ? undefined : () => this.#pipeline.delivery.close(reason === 'released'),
    ).then(() => this.#runStep(this.#recordStep(reason)));
    await this.#recordRemoved.then(() => this.#runStep(() => this.#pipeline.supervisor.close(isFinal.has(reason))));
    const { dropped } = this.#pipeline;
    telemetry.emit({ type: 'session-ended', name: this.name, reason, dropped, errorCode: this.#refusalCode });
    onEnded();
  }

  #recordStep(reason: SessionEndReason): (() => Promise<void>) | undefined {
    if (reason === 'moved' || !this.#isOpen) return undefined;
    return () => (reason === 'released' ? this.#record.release() : this.#record.end());
  }

  /** A failed step of the end must not block the next steps, or a drain waits for ever. */
  async #runStep(step: (() => Promise<void>) | undefined): Promise<void> {
    await step?.().catch((cause: unknown) => this.#report(cause));
  }

  /** The server has answered `initialize`. Only now the session exists for other requests. */
  async #onInitialized(answer: OpeningAnswer, call: Call, response: Message): Promise<void> {
    clearTimeout(this.#startTimer);
    this.#startTimer = undefined; // frees what its callback refers to
    const handshake = readHandshake(response.text);
    if (handshake === undefined) {
      if (isAnswerTooLarge(response.text)) {
        call.report?.failed('handshake_too_large');
        answer.fail(call.id, 'handshake_too_large');
      } else {
        call.report?.answered(response);
        answer.refused(call.id, response.text);
      }
      this.#refusalCode = errorCodeIn(response.text);
      await this.end('refused');
      return;
    }
    this.protocolVersion = handshake.protocolVersion;
    const storeTimer = setTimeout(() => this.#storeAbort.abort(), this.#parts.options.storeWaitMs);
    try {
      await this.#record.create(response.text, handshake.protocolVersion);
    } catch (cause) {
      // If the key was not made here, only the store knows whether another session has or had it.
      const isTaken = hasAssignedKey(this.#client) && cause instanceof SessionExists;
      const reason = cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';
      if (!isTaken) this.#report(cause);
      if (isTaken) failCall(call, 'already_initialized');
      else failCall(call, reason);
      await this.end(isTaken ? 'refused' : reason);
      return;
    } finally {
      clearTimeout(storeTimer);
    }
    if (this.#endReason !== undefined) {
      endCall(call, this.#endReason);
      await this.#record.end(); // the end did not know of the record
      return;
    }
    this.#isOpen = true;
    this.#parts.onReady();
    call.report?.answered(response);
    answer.response(call.id, response.text);
    this.#pipeline.open(handshake);
    const startMs = Math.round(performance.now() - this.#startedAt);
    const { protocolVersion } = this;
    const { pid } = this.#pipeline.supervisor;
    this.#parts.telemetry.emit({ type: 'session-started', name: this.name, protocolVersion, startMs, pid });
  }

  /** The client has sent something. The gateway's own messages carry its forwarded headers from now on. */
  #noteActivity({ forwarded, isContinued }: Reply): void {
    this.idleness.noteActivity();
    // A stream that continues after an owner change is no activity: its client opened it long ago.
    if (forwarded !== undefined && !isContinued) this.#pipeline.supervisor.rememberHeaders(forwarded);
  }

  #adopt(adoption: Adoption): void {
    this.protocolVersion = adoption.record.protocolVersion;
    this.#record.adopt(adoption.record);
    this.#isOpen = true;
    this.#pipeline.adopt(adoption, readHandshake(adoption.record.initialized) as Handshake);
    this.#proof = new TakeoverProof({
      isServerUp: () => this.#pipeline.supervisor.state !== 'restoring',
      confirm: () => detach('session', this.#record.progress()),
    });
  }

  /**
   * The log takes no more events from here. Another instance owns the session, the session was ended, or there is a
   * fault.
   */
  #onRefused(why: WriteRefusal, cause: unknown): void {
    if (this.#ending !== undefined) return; // the log refuses events of a session that was removed from it
    const reason = why === 'fenced' ? 'moved' : why === 'ended' ? 'deleted' : 'internal';
    if (reason === 'internal') this.#report(new Error(`the event log answered ${why}`, { cause }));
    detach('session', this.end(reason));
  }

  #report(cause: unknown): void {
    reportFailure(this.#parts.telemetry.emit, this.name, cause);
  }
}
