// Session: one legacy client and its backend, with its requests, event streams, restores and record.

import type { Call } from '../call/session-calls.ts';
import { type Handshake, readHandshake } from '../protocol/handshake.ts';
import { mayBeOwnId } from '../protocol/ids/own-ids.ts';
import { sessionRevision } from '../protocol/known-revisions.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import { faultAnswer, type Headers, type Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import { detach } from '../util/boundary.ts';
import { endCall, isFinal, mayKeepProcess, type SessionEndReason } from './end-reason.ts';
import { Idleness } from './idleness.ts';
import { Inbound } from './inbound/inbound.ts';
import { Outbound } from './outbound/outbound.ts';
import { requestEnded } from './outbound/server-requests.ts';
import { SessionLog } from './outbound/session-log.ts';
import type { Adoption } from './record/adoption.ts';
import { ServerLink } from './server/server-link.ts';
import { SessionCore, type SessionStart } from './session-core.ts';
import type { HibernationReason } from './session-events.ts';
import type { ClientPost, SessionHandle } from './session-handle.ts';
import { SessionOpening } from './session-opening.ts';
import type { SessionParts } from './session-options.ts';

/** The table that a session is in. */
export interface SessionHost {
  /** The server has answered `initialize`, and the record exists. */
  onReady(session: Session): void;
  /** The session can no longer be used; its parts are still ending. */
  onEnding(session: Session, reason: SessionEndReason): void;
  /** Nothing of the session is left. */
  onEnded(session: Session): void;
}

/** The view of a session for operators, without its id (P12). */
export interface SessionSnapshot {
  readonly kind: 'session' | 'group' | 'one stream';
  readonly principal: Principal;
  /** The client's `initialize` request, which contains the name of the client. Nothing else in it may be shown. */
  readonly initialize: Buffer;
  /** True if the session has no process now. It gets one at the next use. */
  readonly isHibernating: boolean;
  /** Requests in flight. */
  readonly calls: number;
  /** Number of connected streams. */
  readonly streams: number;
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  readonly lastActivityAt: number;
}

/** How long a session that is not restored stays, so that clients can learn the outcome of their calls. */
const collectMs = 3_000;

/**
 * One client of a legacy revision and its backend, from `initialize` or a takeover until the end. A session has four
 * parts, of which each knows only those before it:
 *
 * - `ServerLink`: the server, its restarts, and what is not sent to it yet.
 * - `SessionLog`: what is written to the log, and the streams that the log feeds.
 * - `Outbound`: the way from the server to an answer or a stream.
 * - `Inbound`: the way from the client to the server.
 */
export class Session extends SessionCore implements SessionHandle {
  /** The term of this instance when the session was made. */
  readonly term: number;
  readonly idleness: Idleness;
  readonly log: SessionLog;
  readonly #link: ServerLink;
  readonly #outbound: Outbound;
  readonly #inbound: Inbound;
  readonly #host: SessionHost;
  readonly #startedAt = performance.now();
  /** Set until the client has the answer to its `initialize`. */
  #opening: SessionOpening | undefined;
  /** Ends a session that is not restored. */
  #endTimer: NodeJS.Timeout | undefined;
  #ending: Promise<void> | undefined;
  #recordRemoved: Promise<void> | undefined;

  constructor(parts: SessionParts, start: SessionStart, host: SessionHost) {
    super(parts, start);
    this.term = parts.instance().term;
    this.#host = host;
    this.#link = new ServerLink(this);
    this.log = new SessionLog(this);
    this.#outbound = new Outbound(this, this.#link, this.log);
    this.#inbound = new Inbound(this, this.#link, this.log, this.#outbound);
    this.idleness = new Idleness(this, this.#link, this.log.streams);
    if (!this.client.isGroup) this.holder = this.idleness;
    if (start.adoption !== undefined) this.#adopt(start.adoption);
  }

  get principal(): Principal {
    return this.parts.principal;
  }

  get server(): Server {
    return this.parts.server;
  }

  /** Opens a backend, passes the client's `initialize` on and answers it; `headers` go out with a successful answer. */
  start(reply: Reply, headers?: Headers): void {
    reply.onGone(() => {
      if (this.handshake === undefined) this.endFor('client_gone');
    });
    this.noteActivity(reply);
    const parts = { link: this.#link, log: this.log, inbound: this.#inbound };
    this.#opening = new SessionOpening(this, parts, reply, headers);
    this.#opening.begin();
  }

  answerOpening(call: Call, response: Message): void {
    this.#opening?.answered(call, response, () => {
      if (this.isReady) this.#opening = undefined;
    });
  }

  /** Passes the messages of one POST to the server and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    this.noteActivity(reply);
    if (post.isBatch && !sessionRevision(this.protocolVersion).allowsBatches)
      return reply.answer(faultAnswer('batch_not_allowed', null));
    this.#inbound.post(post, reply);
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void {
    const { streams } = this.log;
    this.noteActivity(reply);
    if (lastEventId === undefined) streams.listen(reply);
    else detach('session', streams.resume(reply, lastEventId), () => reply.answer(faultAnswer('internal', null)));
  }

  /**
   * Ends what has lasted too long: calls, and the session itself. Without use its backend ends until the next message, if
   * its server is configured so (docs/decisions/0189). The process of a session whose client has closed its GET stream and
   * has not come back is freed. Such a session ends if its server must not be restored, because its client must then
   * learn of the loss.
   */
  endOverdue(idleMs: number, abandonedMs: number): void {
    const { isRemote, onBackendExit, hibernateAfterMs, processes = isRemote ? 0 : 1 } = this.server;
    this.#inbound.endOverdue();
    if (this.idleness.isIdleSince(idleMs)) this.endFor('idle');
    if (!this.isReady) return;
    if (hibernateAfterMs !== undefined && this.idleness.isUnusedSince(hibernateAfterMs)) this.#hibernate('idle');
    if (processes === 0 || !this.idleness.isAbandonedSince(abandonedMs)) return;
    if (onBackendExit === 'end') this.endFor('client_gone');
    else this.#hibernate('abandoned', true);
  }

  #hibernate(reason: HibernationReason, mayKeepProcess = false): void {
    this.#link.hibernate(mayKeepProcess);
    this.parts.telemetry.emit({ type: 'session-hibernated', name: this.name, reason });
  }

  /** The view of this session for operators. */
  get snapshot(): SessionSnapshot {
    const { isGroup, isOneStream, initialize } = this.client;
    return {
      kind: isGroup ? 'group' : isOneStream ? 'one stream' : 'session',
      principal: this.principal,
      initialize,
      isHibernating: this.#link.state === 'hibernating',
      calls: this.calls.size,
      streams: this.log.streams.size,
      startedAt: this.#startedAt,
      lastActivityAt: this.idleness.lastActivityAt,
    };
  }

  /** Resolves when no request is in flight, `initialize` neither, and no task unfinished. */
  async whenIdle(): Promise<void> {
    await this.idleness.whenIdle();
    await this.#opening?.whenCompleted();
  }

  /** True from the answer to `initialize` until the session ends. Only then other requests may see the session. */
  get isReady(): boolean {
    return this.handshake !== undefined && this.endReason === undefined; // set before any listener learns of the end
  }

  /** True until the answer to `initialize`. No other instance can know the session, unless its key was not made here. */
  get isOpening(): boolean {
    return this.handshake === undefined && this.endReason === undefined;
  }

  /**
   * True if the session ended for good rather than being handed over. False if it never opened: then it says nothing
   * about its key.
   */
  get leavesNoRecord(): boolean {
    const { handshake, endReason } = this;
    const isKept = endReason === 'moved' || endReason === 'released';
    return handshake !== undefined && endReason !== undefined && !isKept;
  }

  ready(): void {
    this.#host.onReady(this);
  }

  /**
   * Ends the session here: answers open requests, closes streams and the backend, and removes the record. A `released`
   * session keeps its record for other instances, and a `moved` one leaves the record alone. Idempotent.
   */
  end(reason: SessionEndReason): Promise<void> {
    this.endReason ??= reason;
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  /** As `end`. Answers when no instance knows the session any more; the backend may still be ending. */
  remove(reply: Reply): void {
    this.noteActivity(reply);
    this.endFor('deleted');
    detach(
      'session',
      this.#recordRemoved?.then(() => reply.answer({ kind: 'removed' })),
    );
  }

  async #end(reason: SessionEndReason): Promise<void> {
    this.#host.onEnding(this, reason);
    this.stopProof();
    const mayBeKept = mayKeepProcess.has(reason) && !this.idleness.hasUnfinishedTasks;
    // The end does not wait longer for the store: a session can end also while the store is away.
    this.stopStoreAfter(this.limits.storeWaitMs);
    clearTimeout(this.#endTimer);
    this.#opening?.close();
    this.group?.close(); // requests that wait at a gate have not reached the server
    // The next owner resumes the session of the server, and reads on with its calls.
    const goesOn = reason === 'released' && this.client.backend !== undefined;
    for (const call of this.calls.takeAll()) if (!goesOn || call.answer.stream === undefined) endCall(call, reason);
    // Another instance owns a moved session, and its clients continue there.
    if (reason === 'moved') this.log.streams.closeAll();
    this.#recordRemoved = this.#runStep(
      reason === 'moved' ? undefined : () => this.log.close(reason === 'released'),
    ).then(() => this.#runStep(this.#recordStep(reason)));
    await this.#recordRemoved.then(() =>
      this.#runStep(() => this.#link.close({ isForGood: isFinal.has(reason), mayBeKept })),
    );
    this.stopStore();
    const { name, dropped } = this;
    const errorCode = this.#opening?.refusalCode;
    this.parts.telemetry.emit({ type: 'session-ended', name, reason, dropped, errorCode });
    this.#host.onEnded(this);
  }

  #recordStep(reason: SessionEndReason): (() => Promise<void>) | undefined {
    if (reason === 'moved' || this.handshake === undefined) return undefined;
    return () => (reason === 'released' ? this.releaseRecord() : this.endRecord());
  }

  /** A failed step of the end must not block the next steps, or a drain waits for ever. */
  async #runStep(step: (() => Promise<void>) | undefined): Promise<void> {
    await step?.().catch((cause: unknown) => this.report(cause));
  }

  /** The client has sent something. The gateway's own messages carry its forwarded headers from now on. */
  noteActivity({ request: { forwarded }, isContinued }: Reply): void {
    this.idleness.lastActivityAt = performance.now();
    // A stream that continues after an owner change is no activity: its client opened it long ago.
    if (forwarded !== undefined && !isContinued) this.#link.rememberHeaders(forwarded);
  }

  /**
   * Continues a session whose owner was lost. If the server's session outlives a connection, that session is resumed.
   * Otherwise unanswered calls are answered, or run again by a new server.
   */
  #adopt({ record, calls, serverRequests, afterCheckpoint, forwarded }: Adoption): void {
    const { client, server } = this;
    this.handshake = readHandshake(record.initialized) as Handshake;
    if (forwarded !== undefined) this.#link.rememberHeaders(forwarded);
    const checkpoint = client.backend;
    if (checkpoint !== undefined) {
      const adopted = this.#inbound.adopt(calls);
      this.#adoptServerRequests(serverRequests, adopted, checkpoint.isFirst);
      this.log.open();
      this.#link.open(
        { state: checkpoint.state, pending: adopted.map(({ id }) => id), delivered: afterCheckpoint },
        checkpoint.isFirst,
      );
    } else {
      this.#adoptServerRequests(serverRequests, [], false);
      for (const call of this.#inbound.adopt(calls)) {
        if (!this.reruns.allows(call, 'loss')) this.#outbound.fail(call, 'outcome_unknown');
      }
      this.log.open();
      const isNeeded = this.calls.size > 0 || client.expectsServer;
      // The state in the lost process is gone, and the client has to know (docs/design.md, D5). The end is delayed, so
      // that clients can first fetch the answers that are in the log.
      if (server.onBackendExit === 'end')
        this.#endTimer = setTimeout(() => this.endFor('server_exited'), collectMs).unref();
      // A lost instance may leave thousands of sessions whose clients only listen.
      else if (server.hibernateAfterMs !== undefined && !isNeeded) this.#link.hibernate();
      else this.#outbound.restore([]);
    }
    this.awaitProgress(() => this.#link.state !== 'restoring');
  }

  /**
   * Restores the server's open requests, if they had their own ids, and those cannot be confused with ids of another
   * backend. Other requests are cancelled.
   */
  #adoptServerRequests(serverRequests: Adoption['serverRequests'], calls: readonly Call[], isFirst: boolean): void {
    for (const { stream, id } of serverRequests) {
      const call = calls.find(({ answer }) => answer.stream === stream);
      if (isFirst && !mayBeOwnId(id)) this.serverRequests.adopt(id, call ?? 'get');
      else this.log.add(stream, requestEnded(id).text, false);
    }
  }
}
