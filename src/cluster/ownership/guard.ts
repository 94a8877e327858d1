import { isHarmless } from '../../call/rerun.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
import type { Session } from '../../session/session.ts';
import type { ClientPost, SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import type { Lease } from './lease.ts';

/** What a guard needs. */
export interface OwnershipGuardOptions {
  readonly lease: Lease;
  /** How long a request waits that was not handed to its server yet. */
  readonly storeWaitMs: number;
  /** How long an answer waits that must not be given yet. */
  readonly answerWaitMs: number;
  /** Serves a session that turned out not to be this instance's any more. */
  elsewhere(session: Session): SessionHandle;
}

/**
 * Stands before the sessions of an instance that shares a store (P6, P7): as long as the lease is held and a session is
 * registered in the current term, nothing is in the way. Else requests wait before they are handed on, and answers that are
 * in no log wait before they are given: another instance may have the session.
 */
export class OwnershipGuard {
  readonly #options: OwnershipGuardOptions;
  readonly #verified = new WeakMap<Session, number>();
  /** What lets those go on who wait, by session. */
  readonly #waiting = new Map<Session, Set<() => void>>();

  constructor(options: OwnershipGuardOptions) {
    this.#options = options;
  }

  /** True if this instance may act as the session's owner now. */
  covers(session: Session): boolean {
    const { lease } = this.#options;
    return lease.isHeld && this.#verified.get(session) === lease.term && session.isReady;
  }

  /** The session was registered in this term, or, if that took long, in a later one. */
  verify(session: Session, term: number): void {
    if ((this.#verified.get(session) ?? 0) > term) return; // of a later one it is known already
    this.#verified.set(session, term);
    this.#look(session);
  }

  /** The sessions that somebody waits for. */
  get wanted(): Iterable<Session> {
    return this.#waiting.keys();
  }

  /** Looks again whether those who wait can go on: the lease was renewed, a session was registered or ended. */
  release(): void {
    for (const session of this.#waiting.keys()) this.#look(session);
  }

  #look(session: Session): void {
    if (!this.covers(session) && session.isReady) return;
    for (const settle of this.#waiting.get(session) ?? []) settle();
  }

  /** The session for clients, guarded. */
  handleOf(session: Session): SessionHandle {
    return {
      post: (post, reply) =>
        this.#admit(session, reply, requestId(post), {
          here: () => session.post(post, this.#guarded(session, post, reply)),
          elsewhere: (handle) => handle.post(post, reply),
        }),
      listen: (lastEventId, reply) => session.listen(lastEventId, reply), // all of it is in the log
      remove: (reply) =>
        this.#admit(session, reply, null, {
          here: () => session.remove(reply),
          elsewhere: (handle) => handle.remove(reply),
        }),
    };
  }

  #admit(
    session: Session,
    reply: Reply,
    id: RequestId | null,
    { here, elsewhere }: { here(): void; elsewhere(handle: SessionHandle): void },
  ): void {
    if (this.covers(session)) return here();
    detach(
      'cluster',
      this.#wait(session, this.#options.storeWaitMs).then(() => {
        if (reply.isGone && reply.attempt?.isDetached !== true) return;
        if (this.covers(session)) here();
        else if (session.isReady) reply.fault('store_unavailable', id);
        else elsewhere(this.#options.elsewhere(session));
      }),
    );
  }

  /** Resolves when the session is covered or has ended, or after the time. */
  #wait(session: Session, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(session) ?? new Set();
      const settle = (): void => {
        clearTimeout(timer);
        waiting.delete(settle);
        if (waiting.size === 0) this.#waiting.delete(session);
        resolve();
      };
      const timer = setTimeout(settle, ms);
      waiting.add(settle);
      this.#waiting.set(session, waiting);
    });
  }

  #guarded(session: Session, post: ClientPost, reply: Reply): Reply {
    const id = requestId(post);
    const fault: Reply['fault'] = (reason, of, data) => {
      // The session is somebody else's now: who has it runs again what may be (P3).
      if (reason === 'outcome_unknown' && !session.isReady && post.messages.every(isHarmless))
        this.#options.elsewhere(session).post({ ...post, again: true }, reply);
      else reply.fault(reason, of, data);
    };
    const pass = (answer: () => void): void => {
      if (this.covers(session)) return answer();
      detach(
        'cluster',
        this.#wait(session, this.#options.answerWaitMs).then(() => {
          if (this.covers(session)) answer();
          else fault('outcome_unknown', id);
        }),
      );
    };
    return new GuardedReply(reply, pass, fault);
  }
}

/** A reply whose answers pass when they may be given. */
class GuardedReply extends ForwardingReply {
  /** Not the server's word, so it need not wait. */
  readonly fault: Reply['fault'];
  readonly #pass: (answer: () => void) => void;

  constructor(reply: Reply, pass: (answer: () => void) => void, fault: Reply['fault']) {
    super(reply);
    this.#pass = pass;
    this.fault = fault;
  }

  get isContinued(): boolean {
    return this.reply.isContinued ?? false;
  }

  json(text: Buffer, headers?: Headers, status?: number): void {
    this.#pass(() => this.reply.json(text, headers, status));
  }

  accepted(): void {
    this.#pass(() => this.reply.accepted());
  }

  nothing(): void {
    this.reply.nothing();
  }

  removed(): void {
    this.reply.removed();
  }

  stream(headers?: Headers): EventSink {
    return this.reply.stream(headers);
  }
}

/** The request that an error answers. */
const requestId = ({ messages }: ClientPost): RequestId | null =>
  messages.find(({ kind }) => kind === 'request')?.id ?? null;
