import { retryWhileUnavailable, type StopSignal } from '../../store/retry-unavailable.ts';
import type { LogState, Registration, SessionRecord, SessionRecords } from '../../store/session-records.ts';
import { detachedCopy } from '../../util/detached-bytes.ts';
import type { SessionParts } from '../session-options.ts';
import type { ClientState } from './client-state.ts';

/** The session whose record is kept. */
export interface RecordSession {
  readonly parts: Pick<SessionParts, 'principal' | 'instance' | 'storeSignal'> & {
    readonly server: { readonly name: string; readonly digest: string };
    readonly store: { readonly sessions: SessionRecords };
  };
  readonly key: string;
  readonly epoch: number;
  readonly client: ClientState;
  /** Aborted when nothing more may be written, except the end of the record. */
  readonly storeGone: AbortSignal;
  report(cause: unknown): void;
}

type Amendment = Awaited<ReturnType<SessionRecords['amend']>>;

/** Keeps one session's record as its owner: its content, and when it is written. */
export class SessionRecordKeeper {
  readonly #session: RecordSession;
  #initialized: Buffer | undefined;
  #protocolVersion = '';
  /** The `clientSaid` that the record is known to have. Another one is written with the next amendment. */
  #storedSettings: Buffer | undefined;
  readonly #stop = (): AbortSignal => this.#session.storeGone;
  #amending: Promise<Amendment> | undefined;
  /** The amendment after that one, if it is needed. */
  #nextAmendment: Promise<Amendment> | undefined;

  constructor(session: RecordSession) {
    this.#session = session;
  }

  get #sessions(): SessionRecords {
    return this.#session.parts.store.sessions;
  }

  /** Takes clearWriting the record of an earlier owner. */
  adopt({ initialized, protocolVersion }: SessionRecord): void {
    this.#initialized = detachedCopy(initialized);
    this.#protocolVersion = protocolVersion;
  }

  /**
   * Makes the session known to all instances, once its server has answered `initialize`.
   * @param givesUp ends the attempts while the store is away
   */
  async create(initialized: Buffer, protocolVersion: string, givesUp: StopSignal): Promise<void> {
    this.#initialized = detachedCopy(initialized);
    this.#protocolVersion = protocolVersion;
    const { key, client } = this.#session;
    const record = this.#record();
    await retryWhileUnavailable(() => this.#sessions.create(key, record, { followsEnded: client.isGroup }), givesUp);
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
    const { key, parts } = this.#session;
    this.#storedSettings = undefined; // the store may have lost it, or got it from this very call
    const register = () => this.#sessions.register(key, this.#record(), tail, log, parts.instance());
    return retryWhileUnavailable(register, this.#stop);
  }

  /** The session has made progress: losses of earlier owners do not count any more. Never rejects. */
  async progress(): Promise<void> {
    const { key, epoch } = this.#session;
    await retryWhileUnavailable(() => this.#sessions.confirmTakeover(key, epoch), this.#stop).catch(
      (cause: unknown) => {
        if (!this.#session.storeGone.aborted) this.#session.report(cause);
      },
    );
  }

  async release(): Promise<void> {
    const { key, epoch } = this.#session;
    await retryWhileUnavailable(() => this.#sessions.release(key, epoch), this.#stop);
  }

  async end(): Promise<void> {
    // This lasts longer: a session that was ended must not reappear because the store was away.
    const { key, epoch, parts } = this.#session;
    await retryWhileUnavailable(() => this.#sessions.end(key, epoch), parts.storeSignal);
  }

  #write(): Promise<Amendment> {
    const { key, epoch, client } = this.#session;
    const { clientState, clientSaid } = client.save();
    const changes = { clientState, ...(clientSaid !== this.#storedSettings && { clientSaid }) };
    this.#nextAmendment = undefined;
    // An owner that fenced this one off has the state. A missing record is registered with the next event or term.
    const writing = retryWhileUnavailable(() => this.#sessions.amend(key, epoch, changes), this.#stop);
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
      this.#session.report(cause);
    });
    return writing;
  }

  #record(): SessionRecord {
    const { parts, epoch, client } = this.#session;
    const { server, principal } = parts;
    return {
      server: server.name,
      serverDigest: server.digest,
      principal,
      owner: parts.instance().name,
      epoch,
      initialize: client.initialize,
      initialized: this.#initialized as Buffer,
      protocolVersion: this.#protocolVersion,
      ...client.save(),
    };
  }
}
