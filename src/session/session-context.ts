import type { ProcessHolder } from '../backend/backend.ts';
import { RerunPolicy } from '../call/rerun.ts';
import { SessionCalls } from '../call/session-calls.ts';
import type { Handshake } from '../protocol/handshake.ts';
import { assumedRevision } from '../protocol/known-revisions.ts';
import type { BadAnswer } from '../protocol/message/message.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { LogState } from '../store/session-records.ts';
import { detach } from '../util/boundary.ts';
import { type ClientPolicy, createClientPolicy } from './client/client-policy.ts';
import type { SessionEndReason } from './end-reason.ts';
import { AttemptStreams } from './events/attempt-streams.ts';
import { RetryingLog } from './events/retrying-log.ts';
import type { EarlyRoots } from './group/early-roots.ts';
import type { Adoption } from './record/adoption.ts';
import { type ClientKind, ClientState } from './record/client-state.ts';
import { SessionRecordKeeper } from './record/record.ts';
import type { TakeoverProof } from './record/takeover-proof.ts';
import { ServerRequests } from './requests/server-requests.ts';
import { reportFailure, type SessionDropReason, type SessionName, sessionName } from './session-events.ts';
import type { SessionOptions, SessionParts } from './session-options.ts';

/** How a session begins: with a client's `initialize`, or with the state of an earlier owner. */
export interface SessionStart extends ClientKind {
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  /** The client's request, as it was sent. */
  readonly initialize: Buffer;
  readonly adoption?: Adoption;
}

/** The session that a context belongs to. */
export interface ContextOwner {
  /** Ends the session, once. */
  end(reason: SessionEndReason): Promise<void>;
  /** The server has answered `initialize`, and the record exists. */
  ready(): void;
}

/** What all stages of one session share: its name, state, tables and record, and the ways to report and to end. */
export class SessionContext {
  readonly parts: SessionParts;
  readonly key: string;
  readonly limits: SessionOptions;
  readonly name: SessionName;
  readonly epoch: number;
  readonly client: ClientState;
  readonly policy: ClientPolicy;
  /** The event log. Its calls are retried while the store is not available. */
  readonly log: RetryingLog;
  /** The log state that an earlier owner left; undefined for a new session. */
  readonly earlier: LogState | undefined;
  readonly record: SessionRecordKeeper;
  readonly calls = new SessionCalls();
  readonly serverRequests = new ServerRequests();
  readonly attemptStreams = new AttemptStreams();
  readonly reruns: RerunPolicy;
  /** How many messages were dropped, by reason. */
  readonly dropped: Partial<Record<SessionDropReason, number>> = {};
  /**
   * The negotiated revision. Before the answer to `initialize`, this is the revision that the specification assumes.
   */
  protocolVersion: string = assumedRevision;
  /** The server's answer to `initialize`; undefined before. */
  handshake: Handshake | undefined;
  /** How many requests the server has answered, without `initialize` and pings. */
  answeredCalls = 0;
  /** The session as a user of processes; undefined if it never uses a kept process. */
  holder: ProcessHolder | undefined;
  /** The server's first request for roots; undefined if the session is not of a group whose clients have roots. */
  earlyRoots: EarlyRoots | undefined;
  /** Set for a session that was taken over. */
  proof: TakeoverProof | undefined;
  /** Set once the session ends. */
  endReason: SessionEndReason | undefined;
  #storeAbort: AbortController | undefined;
  #storeTimer: NodeJS.Timeout | undefined;
  #isStoreGone = false;
  readonly owner: ContextOwner;

  constructor(parts: SessionParts, start: SessionStart, owner: ContextOwner) {
    const { key, server, store, options } = parts;
    const { epoch, initialize, adoption } = start;
    this.parts = parts;
    this.key = key;
    this.limits = options;
    this.name = sessionName(key, server.name);
    this.epoch = epoch;
    this.client = new ClientState(initialize, adoption?.record, start);
    this.policy = createClientPolicy(this.client, options);
    this.log = new RetryingLog(store.log, () => this.storeGone);
    this.earlier = adoption?.log;
    this.reruns = new RerunPolicy(server.rerun);
    this.record = new SessionRecordKeeper(this);
    this.owner = owner;
  }

  /** Aborted when the store is no longer used. */
  get storeGone(): AbortSignal {
    this.#storeAbort ??= new AbortController();
    if (this.#isStoreGone) this.#storeAbort.abort();
    return this.#storeAbort.signal;
  }

  /** True if streams begin with a priming event. It is known once `initialize` is answered. */
  get primes(): boolean {
    return this.policy.primes(this.protocolVersion);
  }

  /** The store is no longer used after this time, in milliseconds. */
  stopStoreAfter(ms: number): void {
    this.#storeTimer = setTimeout(() => this.stopStore(), ms).unref();
  }

  /** The store is no longer used from now on. A timer that stayed would keep the session in memory. */
  stopStore(): void {
    clearTimeout(this.#storeTimer);
    this.#isStoreGone = true;
    this.#storeAbort?.abort();
  }

  /** The GET stream was delivered up to this position to a listener that is gone. */
  noteGetCursor(cursor: LogPosition | undefined): void {
    this.client.getCursor = cursor;
    this.record.amend();
  }

  /**
   * Counts and reports a message that goes nowhere.
   * @param count how many such messages there were; `text` is one of them
   */
  drop(reason: SessionDropReason, text?: Buffer, count = 1, answer?: BadAnswer): void {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + count;
    const isAtStart = this.handshake === undefined;
    const { name } = this;
    this.parts.telemetry.emit({ type: 'session-message-dropped', name, reason, count, text, isAtStart, answer });
  }

  report(cause: unknown): void {
    reportFailure(this.parts.telemetry.emit, this.name, cause);
  }

  /** The session cannot go on. */
  end(reason: SessionEndReason): void {
    detach('session', this.owner.end(reason));
  }

  /** Ends this session alone, for a fault of the gateway. */
  fail(cause: unknown): void {
    this.report(cause);
    this.end('internal');
  }
}
