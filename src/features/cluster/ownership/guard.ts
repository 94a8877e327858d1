import { isHarmless } from '../../../core/call/rerun.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { ForwardingReply } from '../../../core/reply/forwarding-reply.ts';
import { type CompleteAnswer, type FaultAnswer, faultAnswer, type Reply } from '../../../core/reply/reply.ts';
import type { Session } from '../../../core/session/session.ts';
import { type ClientPost, postId, type SessionHandle } from '../../../core/session/session-handle.ts';
import { detach } from '../../../core/util/boundary.ts';
import type { Lease } from './lease.ts';

/** Options of `OwnershipGuard`. */
export interface OwnershipGuardOptions {
  readonly lease: Lease;
  /** How long a request waits before it is handed to its server. */
  readonly storeWaitMs: number;
  /** How long an answer waits that must not be given yet. */
  readonly answerWaitMs: number;
  /** A handle for a session that this instance no longer owns. */
  elsewhere(session: Session): SessionHandle;
}

/**
 * Guards the sessions of an instance that shares a store (P6, P7). It passes everything while the lease is held and the
 * session is registered in the current term. Otherwise requests wait before they reach the server, and answers that are
 * in no log wait too: another instance may own the session. A session that is opening has no other owner: its server may
 * need an answer of the client before it answers `initialize`.
 */
export class OwnershipGuard {
  readonly #options: OwnershipGuardOptions;
  readonly #verified = new WeakMap<Session, number>();
  /** Functions that resume the waiting requests and answers, by session. */
  readonly #resumeFunctions = new Map<Session, Set<() => void>>();

  constructor(options: OwnershipGuardOptions) {
    this.#options = options;
  }

  /** True if this instance may act as the session's owner now. */
  covers(session: Session): boolean {
    const { lease } = this.#options;
    return lease.isHeld && this.#verified.get(session) === lease.term && session.isReady;
  }

  /** The session was registered in this term, or in a later one if the registration took long. */
  verify(session: Session, term: number): void {
    if ((this.#verified.get(session) ?? 0) > term) return; // a later term is known already
    this.#verified.set(session, term);
    this.#resumeIfCovered(session);
  }

  /** The sessions that requests or answers wait for. */
  get wanted(): Iterable<Session> {
    return this.#resumeFunctions.keys();
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
      this.#wait(session, this.#options.storeWaitMs).then(() => {
        if (reply.isGone) return;
        if (this.covers(session)) here();
        else if (session.isReady) reply.answer(faultAnswer('store_unavailable', id));
        else elsewhere(this.#options.elsewhere(session));
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
        this.#options.elsewhere(session).post({ ...post, again: true }, reply);
      else reply.answer(answer);
    };
    const passWhenCovered = (answer: () => void): void => {
      if (this.covers(session) || session.isOpening) return answer();
      detach(
        'cluster',
        this.#wait(session, this.#options.answerWaitMs).then(() => {
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
