import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../protocol/faults.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { Reply } from '../reply/reply.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { SessionHandle } from '../session/session-handle.ts';

/** What those who expect a session need of their instance. */
export interface AwaitedSessionsOptions {
  /** Looks for the session: here, and at other instances. `later`: nothing can be known now. */
  find(visitor: SessionLookup): Promise<SessionHandle | Reason | 'later'>;
  /** More clients than this do not wait at once: each costs a connection, and a question to the store now and then (P8). */
  readonly maxWaiting: number;
}

/** The pauses between looks at other instances; what is opened here is told at once. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/** Clients that listen to a session that they are about to open, on this instance or on another one. */
export class AwaitedSessions {
  readonly #options: AwaitedSessionsOptions;
  readonly #waiting = new Map<string, Set<AbortController>>();
  #size = 0;
  #isClosed = false;

  constructor(options: AwaitedSessionsOptions) {
    this.#options = options;
  }

  /** Why nobody else may wait, if nobody may. */
  get refusal(): Reason | undefined {
    if (this.#isClosed) return 'draining';
    return this.#size < this.#options.maxWaiting ? undefined : 'too_many_sessions';
  }

  /** Listens as soon as there is the session, after the event `after`; answers with a fault if there is none by then. */
  async listen(visitor: SessionLookup, withinMs: number, after: EventId, reply: Reply): Promise<void> {
    this.#size += 1;
    try {
      const session = await this.#find(visitor, performance.now() + withinMs, reply);
      if (typeof session !== 'string') session.listen(after, reply);
      else if (!reply.isGone) reply.fault(session, null);
    } finally {
      this.#size -= 1;
    }
  }

  /** A session can be used from now on. */
  arrived(key: string): void {
    for (const pause of this.#waiting.get(key) ?? []) pause.abort();
  }

  /** Nobody is to wait any longer. */
  close(): void {
    this.#isClosed = true;
    for (const key of this.#waiting.keys()) this.arrived(key);
  }

  async #find(visitor: SessionLookup, until: number, reply: Reply): Promise<SessionHandle | Reason> {
    reply.onGone(() => this.arrived(visitor.key));
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(1.5 * pauseMs, longestPauseMs)) {
      const found = await this.#options.find(visitor);
      if (found !== 'later' && found !== 'unknown_session') return found;
      if (this.#isClosed) return 'draining';
      if (reply.isGone || performance.now() >= until) return 'unknown_session';
      await this.#pause(visitor.key, pauseMs);
    }
  }

  async #pause(key: string, ms: number): Promise<void> {
    const pause = new AbortController();
    const pauses = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, pauses.add(pause));
    // Cut short by `arrived`: then it is only time to look again.
    await delay(ms, undefined, { ref: false, signal: pause.signal }).catch(() => undefined);
    pauses.delete(pause);
    if (pauses.size === 0 && this.#waiting.get(key) === pauses) this.#waiting.delete(key);
  }
}
