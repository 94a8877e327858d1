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
import type { ClientPost, SessionHandle } from './session-handle.ts';
import { reportFailure, type SessionName, sessionName } from './session-observer.ts';
import type { SessionParts } from './session-options.ts';
import { type SessionSnapshot, snapshotSession } from './session-snapshot.ts';

/** How a session begins: with a client's `initialize`, or where an earlier owner left it. */
export interface SessionStart extends ClientKind {
  readonly epoch: number;
  /** The client's request, as it was sent. */
  readonly initialize: Buffer;
  readonly adoption?: Adoption;
}

/**
 * One client of a legacy-era revision and its backend, from `initialize` to the end, or from where an earlier owner left it:
 * what it is to others, while its `Conversation` carries what is said.
 */
export class Session implements SessionHandle {
  readonly key: string;
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  readonly principal: Principal;
  readonly server: Server;
  readonly name: SessionName;
  /** True if it is one that the gateway opens for modern clients. */
  readonly isOfGroup: boolean;
  readonly idleness: Idleness;
  /** The negotiated revision; until the server has answered `initialize`, the one that the specification assumes. */
  protocolVersion: string = assumedRevision;
  readonly #parts: SessionParts;
  readonly #client: ClientState;
  readonly #talk: SessionPipeline;
  readonly #record: SessionRecordKeeper;
  readonly #usedScopes: UsedScopes;
  /** Aborted when nothing more is asked of the store. */
  readonly #over = new AbortController();
  readonly #startedAt = performance.now();
  /** The server has answered `initialize`, and the record is there. */
  #isOpen = false;
  /** Of a session that was taken over. */
  #proof: TakeoverProof | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #ending: Promise<void> | undefined;
  /** With which error the server refused `initialize`. */
  #refusedWith: number | undefined;
  #endReason: SessionEndReason | undefined;
  #forgotten: Promise<void> | undefined;

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
      ...{ sessions: store.sessions, key, server, principal, epoch, client: this.#client, instance },
      signal: this.#over.signal,
      endSignal: storeSignal,
      onFailed: (cause) => this.#report(cause),
    });
    this.#usedScopes = new UsedScopes({
      names: this.#client.usedScopes,
      amend: () => this.#record.amended(),
      register: () => this.register(),
      waitMs: parts.options.storeWaitMs,
      onAdmitted: (reply) => this.#hear(reply),
      endFault: () => this.#endReason && faultBeforeStart(this.#endReason),
    });
    this.#talk = new SessionPipeline({
      ...{ parts, name: this.name, epoch, client: this.#client, adoption, signal: this.#over.signal },
      protocolVersion: () => this.protocolVersion,
      onInitialized: (answer, call, response) =>
        detach('session', this.#initialized(answer, call, response), () => this.end('internal')),
      onClientChanged: () => this.#record.amend(),
      register: () => this.register(),
      onRefused: (why, cause) => this.#refused(why, cause),
      onAnswered: () => this.#proof?.confirm(),
      onOver: (reason) => detach('session', this.end(reason)),
    });
    this.idleness = new Idleness(this.#client, this.#talk);
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
    this.#hear(reply);
    this.#talk.start(readGatewayMessage(this.#client.initialize), reply, headers);
  }

  /** Passes the messages of one POST to the server and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    this.#usedScopes.admit(reply, post, () => {
      if (post.isBatch && !allowsBatches(this.protocolVersion)) return reply.fault('batch_not_allowed', null);
      this.#talk.requests.post(post, reply);
    });
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void {
    const { streams } = this.#talk.delivery;
    this.#usedScopes.admit(reply, undefined, () => {
      if (lastEventId === undefined) streams.listen(reply);
      else detach('session', streams.resume(reply, lastEventId), () => reply.fault('internal', null));
    });
  }

  /** Lets go of a backend that nobody uses, where its server is configured so (docs/decisions/0045). */
  hibernateIfUnused(): void {
    const { hibernateAfterMs } = this.server;
    if (hibernateAfterMs === undefined || !this.isReady || !this.idleness.isUnusedSince(hibernateAfterMs)) return;
    this.#talk.supervisor.hibernate();
    this.#parts.observer.hibernated(this.name);
  }

  /**
   * The store has been away for longer than a lease, and another instance may have the session: clients that wait for answers
   * here go on elsewhere, or are told what is known (P3).
   * @param openForMs connections that are younger are left alone
   */
  detachClients(openForMs: number): void {
    this.#talk.strand(openForMs);
  }

  /** Ends calls that take too long. */
  endOverdueCalls(): void {
    this.#talk.requests.endOverdue();
  }

  /** What a person sees who looks at it. */
  get snapshot(): SessionSnapshot {
    return snapshotSession(this.#client, this.#talk, {
      startedAt: this.#startedAt,
      lastActivityAt: this.idleness.lastActivityAt,
    });
  }

  /** Resolves when no request is in flight, and no task unfinished. */
  whenIdle(): Promise<void> {
    return this.#talk.activity.whenIdle();
  }

  /** Which scopes its requests needed; who has fewer is not to use it. */
  get usedScopes(): ReadonlySet<string> {
    return this.#usedScopes.stored;
  }

  /** True once the server has answered `initialize`, until the session ends: others may know of it. */
  get isReady(): boolean {
    return this.#isOpen && this.#endReason === undefined; // which is set before anybody hears of the end
  }

  /** True if a client has no event id on its stream yet, with which it could go on elsewhere. */
  get hasUnresumableClients(): boolean {
    return this.#talk.delivery.streams.hasUnresumableClients;
  }

  /** True if the session was ended, and not given up for others; one that never opened does not speak for its key. */
  get leavesNoRecord(): boolean {
    const isKept = this.#endReason === 'moved' || this.#endReason === 'released';
    return this.#isOpen && this.#endReason !== undefined && !isKept;
  }

  /** Says again what is owned here; see `SessionRecords.register`. */
  register(): Promise<Registration> {
    const { tail, log } = this.#talk.delivery.recoveryState;
    return this.#record.register(tail, log);
  }

  /** The session was registered in a new term: what the log had confirmed before may be lost. */
  check(): void {
    this.#talk.delivery.check();
  }

  /**
   * Ends the session here: open requests are answered, streams and the backend are closed, and the record is removed, or
   * given up for others where the session is `released`, or left alone where it has `moved`. Idempotent.
   */
  end(reason: SessionEndReason): Promise<void> {
    this.#endReason ??= reason;
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  /** As `end`; resolves when no instance knows the session any more, while the backend may still be ending. */
  remove(reply: Reply): void {
    this.#usedScopes.admit(reply, undefined, () => {
      detach('session', this.end('deleted'));
      detach(
        'session',
        this.#forgotten?.then(() => reply.removed()),
      );
    });
  }

  async #end(reason: SessionEndReason): Promise<void> {
    const { observer, onEnding, onEnded, options } = this.#parts;
    onEnding(reason);
    clearTimeout(this.#startTimer);
    this.#proof?.end();
    // What the store does not take by then is not waited for: a session ends also while there is none.
    setTimeout(() => this.#over.abort(), options.storeWaitMs).unref();
    this.#talk.close();
    for (const call of this.#talk.calls.takeAll()) endCall(call, reason);
    if (reason === 'moved') this.#talk.delivery.abandon();
    this.#forgotten = this.#try(
      reason === 'moved' ? undefined : () => this.#talk.delivery.close(reason === 'released'),
    ).then(() => this.#try(this.#forget(reason)));
    await this.#forgotten.then(() => this.#try(() => this.#talk.supervisor.close(isFinal.has(reason))));
    observer.ended(this.name, { reason, dropped: this.#talk.dropped, errorCode: this.#refusedWith });
    onEnded();
  }

  #forget(reason: SessionEndReason): (() => Promise<void>) | undefined {
    if (reason === 'moved' || !this.#isOpen) return undefined;
    return () => (reason === 'released' ? this.#record.release() : this.#record.end());
  }

  /** One step of the end that fails must not keep the others, or a drain waits for ever. */
  async #try(step: (() => Promise<void>) | undefined): Promise<void> {
    await step?.().catch((cause: unknown) => this.#report(cause));
  }

  /** The server has answered `initialize`: only now there is a session for others to see. */
  async #initialized(answer: OpeningAnswer, call: Call, response: Message): Promise<void> {
    clearTimeout(this.#startTimer);
    this.#startTimer = undefined; // which would keep what it was to do
    const handshake = readHandshake(response.text);
    if (handshake === undefined) {
      if (isAnswerTooLarge(response.text)) {
        call.report?.failed('handshake_too_large');
        answer.fail(call.id, 'handshake_too_large');
      } else {
        call.report?.answered(response);
        answer.refused(call.id, response.text);
      }
      this.#refusedWith = errorCodeIn(response.text);
      await this.end('refused');
      return;
    }
    this.protocolVersion = handshake.protocolVersion;
    const tooLate = setTimeout(() => this.#over.abort(), this.#parts.options.storeWaitMs);
    try {
      await this.#record.create(response.text, handshake.protocolVersion);
    } catch (cause) {
      // Where the key is not made here, only the store knows all that there are and were.
      const isTaken = hasAssignedKey(this.#client) && cause instanceof SessionExists;
      const reason = cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';
      if (!isTaken) this.#report(cause);
      if (isTaken) failCall(call, 'already_initialized');
      else failCall(call, reason);
      await this.end(isTaken ? 'refused' : reason);
      return;
    } finally {
      clearTimeout(tooLate);
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
    this.#talk.open(handshake);
    const startMs = Math.round(performance.now() - this.#startedAt);
    const { protocolVersion } = this;
    this.#parts.observer.started(this.name, { protocolVersion, startMs, pid: this.#talk.supervisor.pid });
  }

  /** The client has sent something. What it brings for the server goes with what the gateway asks of it from now on. */
  #hear({ forwarded, isContinued }: Reply): void {
    this.idleness.noteActivity();
    // A stream that goes on where an earlier owner left it is no news: its client opened it long ago.
    if (forwarded !== undefined && !isContinued) this.#talk.supervisor.rememberHeaders(forwarded);
  }

  #adopt(adoption: Adoption): void {
    this.protocolVersion = adoption.record.protocolVersion;
    this.#record.adopt(adoption.record);
    this.#isOpen = true;
    this.#talk.adopt(adoption, readHandshake(adoption.record.initialized) as Handshake);
    this.#proof = new TakeoverProof({
      isServerUp: () => this.#talk.supervisor.state !== 'restoring',
      confirm: () => detach('session', this.#record.progress()),
    });
  }

  /** The log takes no more events from here: somebody else has the session, it was ended, or there is a fault. */
  #refused(why: WriteRefusal, cause: unknown): void {
    if (this.#ending !== undefined) return; // the log refuses events of a session that was removed from it
    const reason = why === 'fenced' ? 'moved' : why === 'ended' ? 'deleted' : 'internal';
    if (reason === 'internal') this.#report(new Error(`the event log answered ${why}`, { cause }));
    detach('session', this.end(reason));
  }

  #report(cause: unknown): void {
    reportFailure(this.#parts.observer, this.name, cause);
  }
}
