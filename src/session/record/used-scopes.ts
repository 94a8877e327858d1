import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { Reply } from '../../reply/reply.ts';
import type { Registration, SessionRecords } from '../../store/session-records.ts';
import { detach } from '../../util/boundary.ts';
import { within } from '../../util/timing/within.ts';
import type { ClientPost } from '../session-handle.ts';
import type { ClientState } from './client-state.ts';

/** The session whose requests need scopes. */
export interface ScopedSession {
  /** Writes the scopes to the record; see `SessionRecordKeeper.amended`. */
  amendRecord(): ReturnType<SessionRecords['amend']>;
  /** As `amendRecord`, if the store has lost the record. */
  register(): Promise<Registration>;
  /** A request has been admitted and is about to run. */
  noteActivity(reply: Reply): void;
  /** The fault for a request that never began because the session has ended; undefined while it has not. */
  readonly endFault: Reason | undefined;
}

/** True if the allowed scopes cover all used ones; undefined allows everything. */
export const coversAll = (allowed: ReadonlySet<string> | undefined, used: Iterable<string>): boolean => {
  if (allowed === undefined) return true;
  for (const scope of used) if (!allowed.has(scope)) return false;
  return true;
};

/**
 * The scopes that the requests of a session have needed (P11). For a request with fewer scopes the session does not
 * exist, since it may hold results that those scopes gave. A request with more scopes is welcome (2025-11-25,
 * basic/authorization, "Step-Up Authorization Flow").
 * A request that needs more scopes runs only when the record has them, so that any later owner knows. From then on the
 * scopes count and stay. Until then, requests with fewer scopes may run. A request that was refused because the store
 * is away changes nothing (docs/decisions/0072). The operator's configuration names all scopes, which bounds them.
 */
export class UsedScopes {
  /** The scopes for the record: the stored ones and those that requests wait for. */
  readonly #names: Set<string>;
  /** How long a request waits for the record, in milliseconds. */
  readonly #waitMs: number;
  readonly #session: ScopedSession;
  /** The scopes that the record has and with which a request ran. */
  readonly #stored: Set<string>;
  /** How many requests wait for a scope to be stored. */
  readonly #waiting = new Map<string, number>();

  constructor(client: ClientState, waitMs: number, session: ScopedSession) {
    client.usedScopes ??= new Set();
    this.#names = client.usedScopes;
    this.#waitMs = waitMs;
    this.#session = session;
    this.#stored = new Set(this.#names);
  }

  /** The scopes that a request must have to find the session. */
  get stored(): ReadonlySet<string> {
    return this.#stored;
  }

  /** The session begins with a request that needs these scopes. Its record will begin with them. */
  begin(needed: readonly string[] = []): void {
    for (const scope of needed) {
      this.#names.add(scope);
      this.#stored.add(scope);
    }
  }

  /**
   * Admits a request, at once or when the record has the scopes that it needs. Otherwise answers it with a fault of its
   * scopes, the store, or the session's end. The session may have ended while the request waited.
   * @param post the contents of a POST; undefined for a GET or DELETE
   */
  admit(reply: Reply, post: ClientPost | undefined, run: () => void): void {
    const { scopes, needs } = reply;
    if (!coversAll(scopes, this.#stored)) return reply.fault('unknown_session', requestId(post));
    if (needs === undefined || coversAll(this.#stored, needs)) {
      this.#session.noteActivity(reply);
      return run();
    }
    const admission = this.#storeScopes(needs).then((isStored) => {
      if (reply.isGone) return;
      const fault = this.#session.endFault;
      if (fault !== undefined) return reply.fault(fault, requestId(post));
      if (!isStored) return reply.fault('store_unavailable', requestId(post));
      // Another request may meanwhile have stored a scope that this one does not have.
      if (!coversAll(scopes, this.#stored)) return reply.fault('unknown_session', requestId(post));
      this.#session.noteActivity(reply);
      run();
    });
    detach('session', admission, () => reply.isGone || reply.fault('internal', requestId(post)));
  }

  /** Never rejects. */
  async #storeScopes(needed: readonly string[]): Promise<boolean> {
    for (const scope of needed) {
      this.#names.add(scope);
      this.#waiting.set(scope, (this.#waiting.get(scope) ?? 0) + 1);
    }
    const isStored = await within(this.#store(), this.#waitMs, () => false);
    if (isStored) for (const scope of needed) this.#stored.add(scope);
    this.#releaseScopes(needed);
    return isStored;
  }

  /**
   * Removes scopes from the record with which no request ran and for which none waits. A late write may still store
   * them.
   */
  #releaseScopes(scopes: readonly string[]): void {
    let isChanged = false;
    for (const scope of scopes) {
      const others = (this.#waiting.get(scope) ?? 1) - 1;
      if (others > 0) this.#waiting.set(scope, others);
      else this.#waiting.delete(scope);
      if (others === 0 && !this.#stored.has(scope)) isChanged = this.#names.delete(scope) || isChanged;
    }
    if (isChanged) this.#session.amendRecord().catch(() => undefined); // a failure is reported where the record is written
  }

  /** False if the record has another owner, or nothing more is written. */
  async #store(): Promise<boolean> {
    try {
      const outcome = await this.#session.amendRecord();
      return outcome === 'done' || (outcome === 'no_record' && (await this.#session.register()) === 'registered');
    } catch {
      return false; // a failure is reported where the record is written
    }
  }
}

/** The request that an error answers. */
function requestId(post: ClientPost | undefined): RequestId | null {
  const [first] = post?.isBatch === false ? post.messages : [];
  return first?.kind === 'request' ? (first.id ?? null) : null;
}
