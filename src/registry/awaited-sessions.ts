import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../protocol/faults.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { Reply } from '../reply/reply.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import { backoff } from '../util/timing/backoff.ts';

/** Options of `AwaitedSessions`. */
export interface AwaitedSessionsOptions {
  /** Looks for the session here and on other instances. `later`: the answer cannot be known now. */
  find(lookup: SessionLookup): Promise<SessionHandle | Reason | 'later'>;
  /** How many clients may wait at once. Each costs a connection and an occasional question to the store (P8). */
  readonly maxWaiting: number;
}

/** The pauses between lookups on other instances. A session that opens here ends the pause at once. */
const pauseAfter = backoff({ firstMs: 50, maxMs: 500, factor: 1.5 });

/** Clients that listen to a session that they are about to open, on this instance or on another one. */
export class AwaitedSessions {
  readonly #options: AwaitedSessionsOptions;
  readonly #pausesByKey = new Map<string, Set<AbortController>>();
  #size = 0;
  #isClosed = false;

  constructor(options: AwaitedSessionsOptions) {
    this.#options = options;
  }

  /** The reason to refuse another waiting client; undefined if it may wait. */
  get refusal(): Reason | undefined {
    if (this.#isClosed) return 'draining';
    return this.#size < this.#options.maxWaiting ? undefined : 'too_many_sessions';
  }

  /**
   * Listens after the event `after` as soon as the session exists. Answers with a fault if it does not exist in time.
   */
  async listen(lookup: SessionLookup, withinMs: number, after: EventId, reply: Reply): Promise<void> {
    this.#size += 1;
    try {
      const session = await this.#find(lookup, performance.now() + withinMs, reply);
      if (typeof session !== 'string') session.listen(after, reply);
      else if (!reply.isGone) reply.fault(session, null);
    } finally {
      this.#size -= 1;
    }
  }

  /** The session under this key can be used from now on. */
  notifyOpened(key: string): void {
    for (const pause of this.#pausesByKey.get(key) ?? []) pause.abort();
  }

  /** Ends all waiting. */
  close(): void {
    this.#isClosed = true;
    for (const key of this.#pausesByKey.keys()) this.notifyOpened(key);
  }

  async #find(lookup: SessionLookup, deadline: number, reply: Reply): Promise<SessionHandle | Reason> {
    reply.onGone(() => this.notifyOpened(lookup.key));
    for (let lookups = 0; ; lookups += 1) {
      const found = await this.#options.find(lookup);
      if (found !== 'later' && found !== 'unknown_session') return found;
      if (this.#isClosed) return 'draining';
      if (reply.isGone || performance.now() >= deadline) return 'unknown_session';
      await this.#pause(lookup.key, pauseAfter(lookups));
    }
  }

  async #pause(key: string, ms: number): Promise<void> {
    const pause = new AbortController();
    const pauses = this.#pausesByKey.get(key) ?? new Set();
    this.#pausesByKey.set(key, pauses.add(pause));
    // `notifyOpened` and `close` abort the pause: then it is only time to look again.
    await delay(ms, undefined, { ref: false, signal: pause.signal }).catch(() => undefined);
    pauses.delete(pause);
    if (pauses.size === 0 && this.#pausesByKey.get(key) === pauses) this.#pausesByKey.delete(key);
  }
}
