import { setTimeout as delay } from 'node:timers/promises';
import { isHarmless } from '../../../core/call/rerun.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { ForwardingReply } from '../../../core/reply/forwarding-reply.ts';
import { type CompleteAnswer, type FaultAnswer, faultAnswer, type Reply } from '../../../core/reply/reply.ts';
import type { Session } from '../../../core/session/session.ts';
import { type ClientPost, postId, type SessionHandle } from '../../../core/session/session-handle.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { type ClusterOptions, noticeMs, reportStoreFault } from '../cluster-parts.ts';
import type { Lease } from './lease.ts';

/** How many sessions are registered at once. A store that has just come back has other work too. */
const maxAtOnce = 50;

/**
 * Guards the sessions of an instance that shares a store (P6, P7). It passes everything while the lease is held and the
 * session is registered in the current term. Otherwise requests wait before they reach the server, and answers that are
 * in no log wait too: another instance may own the session. A session that is opening has no other owner: its server may
 * need an answer of the client before it answers `initialize`.
 */
export class OwnershipGuard {
  readonly #options: Pick<ClusterOptions, 'sessions' | 'limits' | 'telemetry'>;
  readonly #lease: Lease;
  readonly #elsewhere: (session: Session) => SessionHandle;
  readonly #verified = new WeakMap<Session, number>();
  /** Functions that resume the waiting requests and answers, by session. */
  readonly #resumeFunctions = new Map<Session, Set<() => void>>();

  /** @param elsewhere a handle for a session that this instance no longer owns */
  constructor(
    options: Pick<ClusterOptions, 'sessions' | 'limits' | 'telemetry'>,
    lease: Lease,
    elsewhere: (session: Session) => SessionHandle,
  ) {
    this.#options = options;
    this.#lease = lease;
    this.#elsewhere = elsewhere;
  }

  /** True if this instance may act as the session's owner now. */
  covers(session: Session): boolean {
    return this.#lease.isHeld && this.#verified.get(session) === this.#lease.term && session.isReady;
  }

  /** Registers a session that was opened in this term. The term may have passed meanwhile. */
  async opened(session: Session, term: number): Promise<void> {
    if (term === this.#lease.term && term > 0) this.#verify(session, term);
    else await this.#register([session]);
  }

  /**
   * Registers all sessions again in a new term, and those that another instance may have taken over once more when that
   * instance has had its time to register. Only then may they act.
   */
  async beginTerm(): Promise<void> {
    const { sessions } = this.#options;
    const { term } = this.#lease;
    await this.#register(sessions());
    if (this.#lease.term !== term) return;
    this.#lease.noteRegistered();
    const waitMs = this.#lease.unsettledMs;
    if (waitMs === 0) return;
    await delay(waitMs, undefined, { ref: false });
    if (this.#lease.term === term) await this.#register(sessions());
  }

  /**
   * Registers the sessions in the current term: first those that requests wait for, then the most recently used. Sessions
   * that other instances have taken, or that were deleted, are ended here. The others may act again. If a new term begins
   * meanwhile, its own registration replaces this one, also where this one waits for the store. A store that comes and goes
   * begins a term each time, and what all of them try again could keep it away for ever.
   */
  async #register(sessions: Iterable<Session>): Promise<void> {
    const { term } = this.#lease;
    const isOutdated = (): boolean => this.#lease.term !== term;
    const queue = this.#inOrder(sessions);
    const register = async (): Promise<void> => {
      for (const session of queue) {
        if (isOutdated()) return;
        const outcome = await session.log.register(isOutdated).catch((cause: unknown) => {
          if (!(cause instanceof StoreUnavailable)) reportStoreFault(this.#options, cause); // it has ended meanwhile
          return undefined;
        });
        if (outcome === 'registered') {
          if (this.#lease.unsettledMs > 0) continue; // see `beginTerm`
          session.log.check();
          this.#verify(session, term);
        } else if (outcome === 'fenced') detach('cluster', session.end('moved'));
        else if (outcome === 'ended') detach('cluster', session.end('deleted'));
      }
    };
    await Promise.all(Array.from({ length: maxAtOnce }, register));
  }

  /**
   * Yields one session after the other. With thousands of sessions the last one comes seconds after the first, and
   * requests do not wait that long.
   */
  *#inOrder(sessions: Iterable<Session>): Generator<Session, void> {
    const byUse = [...sessions].filter(({ isReady }) => isReady);
    byUse.sort((a, b) => b.idleness.lastActivityAt - a.idleness.lastActivityAt);
    const remaining = new Set(byUse);
    const next = (): Session | undefined => {
      for (const session of this.#resumeFunctions.keys()) if (remaining.has(session)) return session;
      const [first] = remaining;
      return first;
    };
    for (let session = next(); session !== undefined; session = next()) {
      remaining.delete(session);
      yield session;
    }
  }

  /** The session was registered in this term, or in a later one if the registration took long. */
  #verify(session: Session, term: number): void {
    if ((this.#verified.get(session) ?? 0) > term) return; // a later term is known already
    this.#verified.set(session, term);
    this.#resumeIfCovered(session);
  }

  /**
   * Checks again whether waiting requests and answers can go on. The lease was renewed, or a session was registered or
   * ended.
   */
  release(): void {
    for (const session of this.#resumeFunctions.keys()) this.#resumeIfCovered(session);
  }

  #resumeIfCovered(session: Session): void {
    if (!this.covers(session) && session.isReady) return;
    for (const settle of this.#resumeFunctions.get(session) ?? []) settle();
  }

  /** The guarded handle of a session for clients. */
  handleOf(session: Session): SessionHandle {
    return {
      post: (post, reply) =>
        this.#runWhenCovered(session, reply, postId(post), {
          here: () => session.post(post, this.#guardReply(session, post, reply)),
          elsewhere: (handle) => handle.post(post, reply),
        }),
      listen: (lastEventId, reply) => session.listen(lastEventId, reply), // everything on such a stream is in the log
      remove: (reply) =>
        this.#runWhenCovered(session, reply, null, {
          here: () => session.remove(reply),
          elsewhere: (handle) => handle.remove(reply),
        }),
    };
  }

  #runWhenCovered(
    session: Session,
    reply: Reply,
    id: RequestId | null,
    { here, elsewhere }: { here(): void; elsewhere(handle: SessionHandle): void },
  ): void {
    if (this.covers(session) || session.isOpening) return here();
    detach(
      'cluster',
      this.#wait(session, this.#options.limits.storeWaitMs).then(() => {
        if (reply.isGone) return;
        if (this.covers(session)) here();
        else if (session.isReady) reply.answer(faultAnswer('store_unavailable', id));
        else elsewhere(this.#elsewhere(session));
      }),
    );
  }

  /** Resolves when the session is covered or has ended, or after the time. */
  #wait(session: Session, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#resumeFunctions.get(session) ?? new Set();
      const settle = (): void => {
        clearTimeout(timer);
        waiting.delete(settle);
        if (waiting.size === 0) this.#resumeFunctions.delete(session);
        resolve();
      };
      const timer = setTimeout(settle, ms);
      waiting.add(settle);
      this.#resumeFunctions.set(session, waiting);
    });
  }

  #guardReply(session: Session, post: ClientPost, reply: Reply): Reply {
    const id = postId(post);
    const fault = (answer: FaultAnswer): void => {
      // Another instance owns the session now. It may run the request again if that is harmless (P3).
      if (answer.reason === 'outcome_unknown' && !session.isReady && post.messages.every(isHarmless))
        this.#elsewhere(session).post({ ...post, again: true }, reply);
      else reply.answer(answer);
    };
    const passWhenCovered = (answer: () => void): void => {
      if (this.covers(session) || session.isOpening) return answer();
      detach(
        'cluster',
        this.#wait(session, this.#options.limits.leaseMs + noticeMs).then(() => {
          if (this.covers(session)) answer();
          else fault(faultAnswer('outcome_unknown', id));
        }),
      );
    };
    return new GuardedReply(reply, passWhenCovered, fault);
  }
}

/** A reply whose answers wait until they may be given. */
class GuardedReply extends ForwardingReply {
  readonly #pass: (answer: () => void) => void;
  readonly #fault: (answer: FaultAnswer) => void;

  constructor(reply: Reply, pass: (answer: () => void) => void, fault: (answer: FaultAnswer) => void) {
    super(reply);
    this.#pass = pass;
    this.#fault = fault;
  }

  override answer(answer: CompleteAnswer): void {
    switch (answer.kind) {
      case 'fault':
        return this.#fault(answer); // it does not come from the server, so it need not wait
      case 'json':
      case 'accepted':
        return this.#pass(() => this.reply.answer(answer));
      case 'removed':
      case 'nothing':
        return this.reply.answer(answer);
      default:
        answer satisfies never;
    }
  }
}
