import { retryWhileUnavailable, type StopSignal } from '../../store/retry-unavailable.ts';
import type { LogState, Registration, SessionRecord, SessionRecords } from '../../store/session-records.ts';
import { detach } from '../../util/boundary.ts';
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

/** Keeps one session's record as its owner: its content, and when it is written. */
export class SessionRecordKeeper {
  readonly #session: RecordSession;
  #initialized: Buffer | undefined;
  #protocolVersion = '';
  /** The `clientSaid` that the record is known to have. Another one is written with the next amendment. */
  #storedSettings: Buffer | undefined;
  readonly #stop = (): AbortSignal => this.#session.storeGone;
  #isWriting = false;
  /** True if the state has changed since the running write began. */
  #isOutdated = false;

  constructor(session: RecordSession) {
    this.#session = session;
  }

  get #sessions(): SessionRecords {
    return this.#session.parts.store.sessions;
  }

  /** Takes over the record of an earlier owner. */
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
    if (this.#isWriting) this.#isOutdated = true;
    else if (this.#initialized !== undefined) detach('session', this.#write());
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

  /** Writes the client's state, and again if it changes meanwhile. Never rejects. */
  async #write(): Promise<void> {
    const { key, epoch, client } = this.#session;
    this.#isWriting = true;
    do {
      this.#isOutdated = false;
      const { clientState, clientSaid } = client.save();
      const changes = { clientState, ...(clientSaid !== this.#storedSettings && { clientSaid }) };
      try {
        // An owner that fenced this one off has the state. A missing record is registered with the next event or term.
        const outcome = await retryWhileUnavailable(() => this.#sessions.amend(key, epoch, changes), this.#stop);
        if (outcome === 'done') this.#storedSettings = clientSaid;
      } catch (cause) {
        this.#session.report(cause);
      }
    } while (this.#isOutdated);
    this.#isWriting = false;
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
