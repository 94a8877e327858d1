import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { Reply } from '../../reply/reply.ts';
import type { Registration, SessionRecords } from '../../store/session-records.ts';
import { detach } from '../../util/boundary.ts';
import type { ClientPost } from '../session-handle.ts';

/** What the memory of a session's scopes needs of it. */
export interface UsedScopesOptions {
  /** What the record is to say, as the client's state has it: the stored scopes, and those that requests wait for. */
  readonly names: Set<string>;
  /** Brings them into the record; see `RecordKeeper.amended`. */
  amend(): ReturnType<SessionRecords['amend']>;
  /** As `amend`, where the store has lost the record. */
  register(): Promise<Registration>;
  /** A request waits so long for that, in milliseconds. */
  readonly waitMs: number;
  /** A request is about to go on. */
  onAdmitted(reply: Reply): void;
  /** What a request gets that never began because the session has ended; undefined while it has not. */
  endFault(): Reason | undefined;
}

/** True if credentials that allow these scopes allow all that are used; undefined allows everything. */
export const coversAll = (allowed: ReadonlySet<string> | undefined, used: Iterable<string>): boolean => {
  if (allowed === undefined) return true;
  for (const scope of used) if (!allowed.has(scope)) return false;
  return true;
};

/**
 * The scopes that the requests of a session have needed (P11): to whoever brings fewer, the session does not exist, since it may
 * hold what was had by them; whoever brings more is welcome (2025-11-25, basic/authorization, "Step-Up Authorization Flow").
 *
 * A request that needs more goes on only when the record says so, so that any later owner knows. From then on the scope counts,
 * and it stays. Until then nothing was had by it: a request that brings fewer goes on meanwhile, and a request that was refused
 * because the store is away changes nothing (docs/decisions/0072). The names stand in the operator's configuration, which
 * bounds them.
 */
export class UsedScopes {
  readonly #options: UsedScopesOptions;
  /** Those that the record has and that a request went on with. */
  readonly #stored: Set<string>;
  /** How many requests wait for a scope to be stored. */
  readonly #waiting = new Map<string, number>();

  constructor(options: UsedScopesOptions) {
    this.#options = options;
    this.#stored = new Set(options.names);
  }

  /** What a request must bring to find the session. */
  get stored(): ReadonlySet<string> {
    return this.#stored;
  }

  /** The session begins with a request that needs these; its record will begin with them. */
  begin(needed: readonly string[] = []): void {
    for (const scope of needed) {
      this.#options.names.add(scope);
      this.#stored.add(scope);
    }
  }

  /**
   * Lets a request go on, at once or when the record has what it needs. Else answers it: with what is wrong with its scopes or
   * the store, or with the end of the session, which may have come while the request waited.
   * @param post what it brings; undefined for a GET or DELETE
   */
  admit(reply: Reply, post: ClientPost | undefined, goOn: () => void): void {
    const { scopes, needs } = reply;
    const { onAdmitted, endFault } = this.#options;
    if (!coversAll(scopes, this.#stored)) return reply.fault('unknown_session', requestId(post));
    if (needs === undefined || coversAll(this.#stored, needs)) {
      onAdmitted(reply);
      return goOn();
    }
    const goneOn = this.#isStored(needs).then((isStored) => {
      if (reply.isGone) return;
      const ended = endFault();
      if (ended !== undefined) return reply.fault(ended, requestId(post));
      if (!isStored) return reply.fault('store_unavailable', requestId(post));
      // Another request may have brought a scope into the record meanwhile that this one does not have.
      if (!coversAll(scopes, this.#stored)) return reply.fault('unknown_session', requestId(post));
      onAdmitted(reply);
      goOn();
    });
    detach('session', goneOn, () => reply.isGone || reply.fault('internal', requestId(post)));
  }

  /** Never rejects. */
  async #isStored(needed: readonly string[]): Promise<boolean> {
    const { names, waitMs } = this.#options;
    for (const scope of needed) {
      names.add(scope);
      this.#waiting.set(scope, (this.#waiting.get(scope) ?? 0) + 1);
    }
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), waitMs).unref();
    });
    const isStored = await Promise.race([this.#store(), tooLate]);
    clearTimeout(timer);
    if (isStored) for (const scope of needed) this.#stored.add(scope);
    this.#waitedFor(needed);
    return isStored;
  }

  /** Takes back from the record what no request went on with, and none waits for: a late write may still bring it there. */
  #waitedFor(scopes: readonly string[]): void {
    const { names, amend } = this.#options;
    let isChanged = false;
    for (const scope of scopes) {
      const others = (this.#waiting.get(scope) ?? 1) - 1;
      if (others > 0) this.#waiting.set(scope, others);
      else this.#waiting.delete(scope);
      if (others === 0 && !this.#stored.has(scope)) isChanged = names.delete(scope) || isChanged;
    }
    if (isChanged) amend().catch(() => undefined); // what fails is told where it is written
  }

  /** False if the record is not this owner's any more, or nothing more is written. */
  async #store(): Promise<boolean> {
    const { amend, register } = this.#options;
    try {
      const said = await amend();
      return said === 'done' || (said === 'no_record' && (await register()) === 'registered');
    } catch {
      return false; // what fails is told where it is written
    }
  }
}

/** The request that an error answers. */
function requestId(post: ClientPost | undefined): RequestId | null {
  const [first] = post?.isBatch === false ? post.messages : [];
  return first?.kind === 'request' ? (first.id ?? null) : null;
}
