import type { RequestId } from '../protocol/faults.ts';
import type { Registration, SessionRecords } from '../store/session-records.ts';
import type { Reply } from './reply.ts';
import type { Post } from './session-handle.ts';

/** What the memory of a session's scopes needs of it. */
export interface UsedScopesOptions {
  /** What is used, as the client's state has it: here it grows. */
  readonly names: Set<string>;
  /** Brings them into the record; see `RecordKeeper.amended`. */
  amend(): ReturnType<SessionRecords['amend']>;
  /** As `amend`, where the store has lost the record. */
  register(): Promise<Registration>;
  /** A request waits so long for that, in milliseconds. */
  readonly waitMs: number;
  /** A request is about to go on. */
  onAdmitted(reply: Reply): void;
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
 * They only ever grow, and a request that makes them grow goes on only when the record says so, so that any later owner knows.
 * What stands in them is of the operator's configuration, which bounds them.
 */
export class UsedScopes {
  readonly #options: UsedScopesOptions;
  /** Those that the record has. */
  readonly #stored: Set<string>;

  constructor(options: UsedScopesOptions) {
    this.#options = options;
    this.#stored = new Set(options.names);
  }

  /** The session begins with a request that needs these; its record will begin with them. */
  begin(needed: readonly string[] = []): void {
    for (const scope of needed) {
      this.#options.names.add(scope);
      this.#stored.add(scope);
    }
  }

  /**
   * Lets a request go on, at once or when the record has what it needs; or tells it why not, and nothing of the session is
   * changed by it.
   * @param post what it brings; undefined for a GET or DELETE
   */
  admit(reply: Reply, post: Post | undefined, goOn: () => void): void {
    const { scopes, needs } = reply;
    const { names, onAdmitted } = this.#options;
    if (!coversAll(scopes, names)) return reply.fault('unknown_session', requestId(post));
    if (needs === undefined || coversAll(this.#stored, needs)) {
      onAdmitted(reply);
      return goOn();
    }
    for (const scope of needs) names.add(scope);
    void this.#isStored(needs).then((isStored) => {
      if (reply.isGone) return;
      if (!isStored) return reply.fault('store_unavailable', requestId(post));
      onAdmitted(reply);
      goOn();
    });
  }

  async #isStored(needed: readonly string[]): Promise<boolean> {
    const { waitMs } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), waitMs);
    });
    const stored = this.#store().then((isDone) => {
      if (isDone) for (const scope of needed) this.#stored.add(scope);
      return isDone;
    });
    const isStored = await Promise.race([stored, tooLate]);
    clearTimeout(timer);
    return isStored;
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
function requestId(post: Post | undefined): RequestId | null {
  const [first] = post?.isBatch === false ? post.messages : [];
  return first?.kind === 'request' ? (first.id ?? null) : null;
}
