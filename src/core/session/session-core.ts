import type { ProcessHolder } from '../backend/backend.ts';
import type { RerunPolicy } from '../call/rerun.ts';
import { type Call, SessionCalls } from '../call/session-calls.ts';
import type { Handshake } from '../protocol/handshake.ts';
import { assumedRevision, sessionRevision } from '../protocol/known-revisions.ts';
import type { BadAnswer, Message } from '../protocol/message/message.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';
import { retryWhileUnavailable } from '../store/retry-unavailable.ts';
import type { LogState, Registration, SessionRecord } from '../store/session-records.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { detachedCopy } from '../util/detached-bytes.ts';
import type { SessionEndReason } from './end-reason.ts';
import type { GroupRules } from './group-rules.ts';
import { ServerRequests } from './outbound/server-requests.ts';
import type { Adoption } from './record/adoption.ts';
import { type ClientKind, ClientState } from './record/client-state.ts';
import { type SessionDropReason, type SessionName, sessionName } from './session-events.ts';
import type { SessionOptions, SessionParts } from './session-options.ts';

/** How a session begins: with a client's `initialize`, or with the state of an earlier owner. */
export interface SessionStart extends ClientKind {
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  /** The client's request, as it was sent. */
  readonly initialize: Buffer;
  readonly adoption?: Adoption;
}

/**
 * How long the server of a session that was taken over must stay up to count as progress. An answer to its client
 * counts too.
 */
const proofMs = 10_000;

/**
 * What the parts of one session share: its name, its client, its tables and its record, and the ways to report and to
 * end. `Session` is the only subclass: its parts know this one, so that no part knows the session that holds it.
 */
export abstract class SessionCore {
  readonly parts: SessionParts;
  readonly key: string;
  readonly limits: SessionOptions;
  readonly name: SessionName;
  /** The fencing token of this owner (P6). */
  readonly epoch: number;
  readonly client: ClientState;
  /** The log state that an earlier owner left; undefined for a new session. */
  readonly earlier: LogState | undefined;
  readonly calls = new SessionCalls();
  readonly serverRequests = new ServerRequests();
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
  /** Set for the session of a group. */
  group: GroupRules | undefined;
  /** Set once the session ends. */
  endReason: SessionEndReason | undefined;
  #proofTimer: NodeJS.Timeout | undefined;
  #storeAbort: AbortController | undefined;
  #storeTimer: NodeJS.Timeout | undefined;
  #isStoreGone = false;
  /** The server's answer to `initialize`, as the record has it. */
  #initialized: Buffer | undefined;
  /** The `clientSaid` that the record is known to have. Another one is written with the next amendment. */
  #storedSettings: Buffer | undefined;
  #isAmending = false;
  /** True if the state has changed since the running write began. */
  #isOutdated = false;

  constructor(parts: SessionParts, start: SessionStart) {
    const { key, server, options } = parts;
    const { epoch, initialize, adoption } = start;
    this.parts = parts;
    this.key = key;
    this.limits = options;
    this.name = sessionName(key, server.name);
    this.epoch = epoch;
    this.client = new ClientState(initialize, adoption?.record, start);
    this.earlier = adoption?.log;
    this.reruns = server.reruns;
    if (adoption === undefined) return;
    this.protocolVersion = adoption.record.protocolVersion;
    this.#initialized = detachedCopy(adoption.record.initialized);
  }

  /** Ends the session, once. */
  abstract end(reason: SessionEndReason): Promise<void>;

  /** The record exists: other requests may see the session. */
  abstract ready(): void;

  /** The server has answered `initialize`. */
  abstract answerOpening(call: Call, response: Message): void;

  /** The most requests in flight (P8). */
  get maxCalls(): number {
    return this.client.isGroup ? this.limits.maxSharedCalls : this.limits.maxCalls;
  }

  /**
   * True if streams begin with a priming event. It is known once `initialize` is answered. The gateway, as the client of
   * a group, resumes after one in every revision.
   */
  get primes(): boolean {
    const { isGroup, isOneStream } = this.client;
    return isGroup || (!isOneStream && sessionRevision(this.protocolVersion).primesStreams);
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

  /** Reports a store that is away or full as such. Anything else is a fault of the gateway itself. */
  report(cause: unknown): void {
    const { emit } = this.parts.telemetry;
    if (cause instanceof StoreUnavailable) emit({ type: 'store-failed', cause });
    else emit({ type: 'session-failed', name: this.name, cause });
  }

  /** The session cannot go on, for this reason. */
  endFor(reason: SessionEndReason): void {
    detach('session', this.end(reason));
  }

  /** Ends this session alone, for a fault of the gateway. */
  fail(cause: unknown): void {
    this.report(cause);
    this.endFor('internal');
  }

  /** Does work whose fault ends this session alone. */
  guard(work: () => void): void {
    try {
      work();
    } catch (cause) {
      this.fail(cause);
    }
  }

  /** Aborted when the store is no longer used. */
  get storeGone(): AbortSignal {
    this.#storeAbort ??= new AbortController();
    if (this.#isStoreGone) this.#storeAbort.abort();
    return this.#storeAbort.signal;
  }

  /** Repeats an operation of the store until it is done, or the store is no longer used. */
  retry<T>(operation: () => Promise<T>, onFailure?: () => void): Promise<T> {
    return retryWhileUnavailable(operation, () => this.storeGone, onFailure);
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

  /**
   * Makes the session known to all instances, once its server has answered `initialize`.
   * @param givesUp ends the attempts while the store is away
   */
  async createRecord(initialized: Buffer, protocolVersion: string, givesUp: () => AbortSignal): Promise<void> {
    const { key, client, parts } = this;
    this.#initialized = detachedCopy(initialized);
    this.protocolVersion = protocolVersion;
    const record = this.#record();
    const options = { followsEnded: client.isGroup };
    await retryWhileUnavailable(() => parts.store.sessions.create(key, record, options), givesUp);
    this.#storedSettings = record.clientSaid;
  }

  /**
   * The state of the client has changed. The record follows as soon as possible, and the newest state wins. Before there
   * is a record, nothing is written.
   */
  amendRecord(): void {
    if (this.#isAmending) this.#isOutdated = true;
    else if (this.#initialized !== undefined) detach('session', this.#amend());
  }

  /** The GET stream was delivered up to this position to a listener that is gone. */
  noteGetCursor(cursor: LogPosition | undefined): void {
    this.client.getCursor = cursor;
    this.amendRecord();
  }

  /** Registers the session again: in a new term, or at a store that lost it; see `SessionRecords.register`. */
  registerRecord(tail: number, log: LogState, isOutdated = () => false): Promise<Registration> {
    const { key, parts } = this;
    this.#storedSettings = undefined; // the store may have lost it, or got it from this very call
    return this.retry(async () =>
      isOutdated() ? 'outdated' : parts.store.sessions.register(key, this.#record(), tail, log, parts.instance()),
    );
  }

  /** Other instances may continue the session. */
  async releaseRecord(): Promise<void> {
    await this.retry(() => this.parts.store.sessions.release(this.key, this.epoch));
  }

  async endRecord(): Promise<void> {
    // This lasts longer: a session that was ended must not reappear because the store was away.
    const { key, epoch, parts } = this;
    await retryWhileUnavailable(() => parts.store.sessions.end(key, epoch), parts.storeSignal);
  }

  /**
   * The session was taken over. Once it makes progress, the losses of its earlier owners do not count against it
   * (docs/decisions/0015).
   * @param isServerUp false while the server is being started again
   */
  awaitProgress(isServerUp: () => boolean): void {
    this.#proofTimer = setInterval(() => {
      if (isServerUp()) this.confirmProgress();
    }, proofMs).unref();
  }

  /** A session that was taken over makes progress. */
  confirmProgress(): void {
    if (this.#proofTimer === undefined) return;
    this.stopProof();
    const confirmed = this.retry(() => this.parts.store.sessions.confirmTakeover(this.key, this.epoch));
    detach(
      'session',
      confirmed.catch((cause: unknown) => {
        if (!this.#isStoreGone) this.report(cause);
      }),
    );
  }

  /** Nothing more is confirmed. */
  stopProof(): void {
    clearInterval(this.#proofTimer);
    this.#proofTimer = undefined;
  }

  /** Writes the client's state, and again if it changes meanwhile. Never rejects. */
  async #amend(): Promise<void> {
    const { key, epoch, client, parts } = this;
    this.#isAmending = true;
    do {
      this.#isOutdated = false;
      const { clientState, clientSaid } = client.save();
      const changes = { clientState, ...(clientSaid !== this.#storedSettings && { clientSaid }) };
      try {
        // An owner that fenced this one off has the state. A missing record is registered with the next event or term.
        const outcome = await this.retry(() => parts.store.sessions.amend(key, epoch, changes));
        if (outcome === 'done') this.#storedSettings = clientSaid;
      } catch (cause) {
        this.report(cause);
      }
    } while (this.#isOutdated);
    this.#isAmending = false;
  }

  #record(): SessionRecord {
    const { parts, epoch, client, protocolVersion } = this;
    const { server, principal } = parts;
    return {
      server: server.name,
      serverDigest: server.digest,
      principal,
      owner: parts.instance().name,
      epoch,
      initialize: client.initialize,
      initialized: this.#initialized as Buffer,
      protocolVersion,
      ...client.save(),
    };
  }
}
