import { createHash } from 'node:crypto';
import type { Changes } from './changes.ts';

/** The same change is told so often at most (P8): a client that hears of it looks anew, and sees the newest. */
const everyMs = 1_000;

/** So many changes are told apart within that time; beyond them all listeners are told that anything may have changed. */
const maxTold = 1_000;

/** Announced in place of a change: anything may have changed. */
export const anyChange = Buffer.alloc(0);

interface Told {
  readonly timer: NodeJS.Timeout;
  /** It came again since it was told. */
  again: { readonly topic: string; readonly text: Buffer } | undefined;
}

/**
 * Tells all instances what the servers of groups say has changed: a change at once, and one that comes again within a second
 * at the end of that.
 */
export class ChangeThrottle {
  readonly #changes: Changes;
  readonly #onFailed: (cause: unknown) => void;
  readonly #told = new Map<string, Told>();
  #isClosed = false;

  /** @param onFailed a change could not be told; who listens is told so by the store when it is back */
  constructor(changes: Changes, onFailed: (cause: unknown) => void) {
    this.#changes = changes;
    this.#onFailed = onFailed;
  }

  notify(topic: string, text: Buffer): void {
    if (this.#isClosed) return;
    const key = `${topic} ${createHash('sha256').update(text).digest('base64url')}`;
    const told = this.#told.get(key);
    if (told !== undefined) told.again = { topic, text };
    else if (this.#told.size < maxTold || text === anyChange) this.#announce(key, topic, text);
    else this.notify(topic, anyChange);
  }

  /** Forgets what would be told again: the store is about to be closed. Nothing is told from now on. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#told.values()) clearTimeout(timer);
    this.#told.clear();
  }

  #announce(key: string, topic: string, text: Buffer): void {
    const timer = setTimeout(() => {
      this.#told.delete(key);
      if (told.again !== undefined) this.#announce(key, topic, text);
    }, everyMs).unref();
    const told: Told = { timer, again: undefined };
    this.#told.set(key, told);
    this.#changes.publish(topic, text).catch(this.#onFailed);
  }
}
