import type { Principal } from '../../protocol/principal.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import type { LogState, Registration, SessionRecord, SessionRecords } from '../../store/session-records.ts';
import { detachedCopy } from '../../util/detached-copy.ts';
import type { ClientState } from './client-state.ts';

/** What a record says that never changes under one owner. */
export interface RecordParts {
  readonly sessions: SessionRecords;
  readonly key: string;
  readonly server: { readonly name: string; readonly digest: string };
  readonly principal: Principal;
  readonly epoch: number;
  readonly client: ClientState;
  /** The name of this instance now, and how often it had to register what it owns. */
  instance(): { readonly name: string; readonly term: number };
  /** Aborted when nothing is to be written any more. */
  readonly signal: AbortSignal;
  /** Aborted later: a session that was ended must not come to life again because the store was away. */
  readonly endSignal: AbortSignal;
  onFailed(cause: unknown): void;
}

type Amendment = Awaited<ReturnType<SessionRecords['amend']>>;

/** Keeps one session's record as its owner: what it says of the session, and when it says it. */
export class SessionRecordKeeper {
  readonly #parts: RecordParts;
  #initialized: Buffer | undefined;
  #protocolVersion = '';
  /** The `clientSaid` that the record is known to have; another one is written with the next amendment. */
  #said: Buffer | undefined;
  #amending: Promise<Amendment> | undefined;
  /** The amendment after that one, if it is needed. */
  #nextAmendment: Promise<Amendment> | undefined;

  constructor(parts: RecordParts) {
    this.#parts = parts;
  }

  /** Takes over what an earlier owner wrote. */
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
    this.#said = record.clientSaid;
  }

  /** Notes that the client's state has changed: the record follows, as soon as it can. The newest state wins. */
  amend(): void {
    // What fails is told where it is written.
    if (this.#initialized !== undefined) this.amended().catch(() => undefined);
  }

  /** As `amend`. Resolves with what the store says of a state that is no older than the client's is now. */
  amended(): Promise<Amendment> {
    if (this.#nextAmendment !== undefined) return this.#nextAmendment;
    if (this.#amending === undefined) return this.#write();
    const write = (): Promise<Amendment> => this.#write();
    this.#nextAmendment = this.#amending.then(write, write);
    return this.#nextAmendment;
  }

  /** Says again what is owned here: in a new term, or to a store that lost it. */
  register(tail: number, log: LogState): Promise<Registration> {
    const { sessions, key, signal, instance } = this.#parts;
    this.#said = undefined; // the store may have lost it, or have it from this very call
    return retryWhileUnavailable(() => sessions.register(key, this.#record(), tail, log, instance().term), signal);
  }

  /** The session has made progress: the losses of earlier owners do not count any more. Never rejects. */
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
    const changes = { clientState, ...(clientSaid !== this.#said && { clientSaid }) };
    this.#nextAmendment = undefined;
    // Whoever fenced it off has what was there; one without a record is registered with the next event or term.
    const writing = retryWhileUnavailable(() => sessions.amend(key, epoch, changes), signal);
    this.#amending = writing;
    const over = (): void => {
      if (this.#amending === writing) this.#amending = undefined;
    };
    const done = (said: Amendment): void => {
      over();
      if (said === 'done') this.#said = clientSaid;
    };
    writing.then(done, (cause: unknown) => {
      over();
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
