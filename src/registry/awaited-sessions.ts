import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../protocol/faults.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import { createMessageBatch } from '../reply/event-batch.ts';
import { faultAnswer, type Reply } from '../reply/reply.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import { backoff } from '../util/timing/backoff.ts';

/** Options of `AwaitedSessions`. */
export interface AwaitedSessionsOptions {
  /** Looks for the session here and on other instances. `later`: the answer cannot be known now. */
  find(lookup: SessionLookup): Promise<SessionHandle | Reason | 'later'>;
  /** How many clients may wait at once. Each costs a connection and an occasional question to the store (P8). */
  readonly maxWaiting: number;
  /**
   * Subscribes to the messages that other instances have for this waiting client. Absent if there is no other instance.
   * @returns a function that ends the subscription
   */
  subscribe?(key: string, onMessage: (text: Buffer) => void): Promise<() => void>;
}

/** The pauses between lookups on other instances. A session that opens here ends the pause at once. */
const pauseAfter = backoff({ firstMs: 50, maxMs: 500, factor: 1.5 });

/** Clients that listen to a session that they are about to open, on this instance or on another one. */
export class AwaitedSessions {
  readonly #options: AwaitedSessionsOptions;
  readonly #pausesByKey = new Map<string, Set<AbortController>>();
  /** The streams of the waiting clients, the newest of each key. */
  readonly #replies = new Map<string, Reply>();
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

  /** True if a client listens here to a session that is not open yet. */
  has(key: string): boolean {
    return this.#replies.has(key);
  }

  /** Sends a message to a client that waits here. Returns false if there is none. */
  tell(key: string, text: Buffer): boolean {
    const reply = this.#replies.get(key);
    reply?.stream().write(createMessageBatch(text));
    return reply !== undefined;
  }

  /**
   * Listens after the event `after` as soon as the session exists. Answers with a fault if it does not exist in time.
   * @param open opens the stream of the reply, which names the URL for POSTs; other instances are heard by then
   */
  async listen(
    lookup: SessionLookup,
    withinMs: number,
    after: EventId,
    reply: Reply,
    open: () => void = () => undefined,
  ): Promise<void> {
    const { key } = lookup;
    this.#size += 1;
    this.#replies.set(key, reply);
    let unsubscribe: (() => void) | undefined;
    try {
      const subscribed = this.#options.subscribe?.(key, (text) => this.tell(key, text));
      unsubscribe = subscribed && (await subscribed.catch(() => undefined));
      if (!reply.isGone) open();
      const session = await this.#find(lookup, performance.now() + withinMs, reply);
      if (typeof session !== 'string') session.listen(after, reply);
      else if (!reply.isGone) reply.answer(faultAnswer(session, null));
    } finally {
      this.#size -= 1;
      if (this.#replies.get(key) === reply) this.#replies.delete(key);
      unsubscribe?.();
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
