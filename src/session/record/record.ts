import type { Principal } from '../../protocol/principal.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import type { LogState, Registration, SessionRecord, SessionRecords } from '../../store/session-records.ts';
import { detachedCopy } from '../../util/detached-bytes.ts';
import type { ClientState } from './client-state.ts';

/** The parts of a record that never change under one owner. */
export interface RecordParts {
  readonly sessions: SessionRecords;
  readonly key: string;
  readonly server: { readonly name: string; readonly digest: string };
  readonly principal: Principal;
  readonly epoch: number;
  readonly client: ClientState;
  /** The current name of this instance, and its count of registrations. */
  instance(): { readonly name: string; readonly term: number };
  /** Aborted when nothing more may be written. */
  readonly signal: AbortSignal;
  /** Aborted later: a session that was ended must not reappear because the store was away. */
  readonly endSignal: AbortSignal;
  onFailed(cause: unknown): void;
}

type Amendment = Awaited<ReturnType<SessionRecords['amend']>>;

/** Keeps one session's record as its owner: its content, and when it is written. */
export class SessionRecordKeeper {
  readonly #parts: RecordParts;
  #initialized: Buffer | undefined;
  #protocolVersion = '';
  /** The `clientSaid` that the record is known to have. Another one is written with the next amendment. */
  #storedSettings: Buffer | undefined;
  #amending: Promise<Amendment> | undefined;
  /** The amendment after that one, if it is needed. */
  #nextAmendment: Promise<Amendment> | undefined;

  constructor(parts: RecordParts) {
    this.#parts = parts;
  }

  /** Takes clearWriting the record of an earlier owner. */
  adopt({ initialized, protocolVersion }: SessionRecord): void {
    this.#initialized = detachedCopy(initialized);
    this.#protocolVersion = protocolVersion;
  }

  /** Makes the session known to all instances, once its server has answered `initialize`. */
  async create(initialized: Buffer, protocolVersion: string): Promise<void> {
    this.#initialized = detachedCopy(initialized);
    this.#protocolVersion = protocolVersion;
    const { sessions, key, client, signal } = this.#parts;
    const record = this.#record();
    await retryWhileUnavailable(() => sessions.create(key, record, { followsEnded: client.isGroup }), signal);
    this.#storedSettings = record.clientSaid;
  }

  /** Notes that the client's state has changed. The record follows as soon as possible, and the newest state wins. */
  amend(): void {
    // A failure is reported where the record is written.
    if (this.#initialized !== undefined) this.amended().catch(() => undefined);
  }

  /** As `amend`. Resolves with the store's answer to a state at least as new as the client's state now. */
  amended(): Promise<Amendment> {
    if (this.#nextAmendment !== undefined) return this.#nextAmendment;
    if (this.#amending === undefined) return this.#write();
    const write = (): Promise<Amendment> => this.#write();
    this.#nextAmendment = this.#amending.then(write, write);
    return this.#nextAmendment;
  }

  /** Registers the session again: in a new term, or at a store that lost it. */
  register(tail: number, log: LogState): Promise<Registration> {
    const { sessions, key, signal, instance } = this.#parts;
    this.#storedSettings = undefined; // the store may have lost it, or got it from this very call
    return retryWhileUnavailable(() => sessions.register(key, this.#record(), tail, log, instance().term), signal);
  }

  /** The session has made progress: losses of earlier owners do not count any more. Never rejects. */
  async progress(): Promise<void> {
    const { sessions, key, epoch, signal, onFailed } = this.#parts;
    await retryWhileUnavailable(() => sessions.confirmTakeover(key, epoch), signal).catch((cause: unknown) => {
      if (!signal.aborted) onFailed(cause);
    });
  }

  async release(): Promise<void> {
    const { sessions, key, epoch, signal } = this.#parts;
    await retryWhileUnavailable(() => sessions.release(key, epoch), signal);
  }

  async end(): Promise<void> {
    const { sessions, key, epoch, endSignal } = this.#parts;
    await retryWhileUnavailable(() => sessions.end(key, epoch), endSignal);
  }

  #write(): Promise<Amendment> {
    const { sessions, key, epoch, client, signal, onFailed } = this.#parts;
    const { clientState, clientSaid } = client.save();
    const changes = { clientState, ...(clientSaid !== this.#storedSettings && { clientSaid }) };
    this.#nextAmendment = undefined;
    // An owner that fenced this one off has the state. A missing record is registered with the next event or term.
    const writing = retryWhileUnavailable(() => sessions.amend(key, epoch, changes), signal);
    this.#amending = writing;
    const clearWriting = (): void => {
      if (this.#amending === writing) this.#amending = undefined;
    };
    const onDone = (outcome: Amendment): void => {
      clearWriting();
      if (outcome === 'done') this.#storedSettings = clientSaid;
    };
    writing.then(onDone, (cause: unknown) => {
      clearWriting();
      onFailed(cause);
    });
    return writing;
  }

  #record(): SessionRecord {
    const { server, principal, epoch, client, instance } = this.#parts;
    return {
      server: server.name,
      serverDigest: server.digest,
      principal,
      owner: instance().name,
      epoch,
      initialize: client.initialize,
      initialized: this.#initialized as Buffer,
      protocolVersion: this.#protocolVersion,
      ...client.save(),
    };
  }
}
