import { createHash } from 'node:crypto';
import type { Changes } from './changes.ts';

/** The shortest time between announcements of one change (P8). A client that sees one reads the newest state anyway. */
const repeatMs = 1_000;

/**
 * How many changes are told apart within that time. Beyond them the announcement says that anything may have changed.
 */
const maxRecent = 1_000;

/** Announced in place of a change: anything may have changed. */
export const anyChange = Buffer.alloc(0);

interface Announcement {
  readonly timer: NodeJS.Timeout;
  /** The change if it has come again since it was announced. */
  repeat: { readonly topic: string; readonly text: Buffer } | undefined;
}

/**
 * Announces to all instances the changes that the servers of groups report. A change is announced at once; the same
 * change within a second is announced at the end of that second.
 */
export class ChangeThrottle {
  readonly #changes: Changes;
  readonly #onFailed: (cause: unknown) => void;
  readonly #recent = new Map<string, Announcement>();
  #isClosed = false;

  /**
   * @param onFailed called when a change could not be announced. The store notifies its listeners of the loss when it
   *   is back.
   */
  constructor(changes: Changes, onFailed: (cause: unknown) => void) {
    this.#changes = changes;
    this.#onFailed = onFailed;
  }

  notify(topic: string, text: Buffer): void {
    if (this.#isClosed) return;
    const key = `${topic} ${createHash('sha256').update(text).digest('base64url')}`;
    const recent = this.#recent.get(key);
    if (recent !== undefined) recent.repeat = { topic, text };
    else if (this.#recent.size < maxRecent || text === anyChange) this.#announce(key, topic, text);
    else this.notify(topic, anyChange);
  }

  /** Drops the repeats that are still due and announces nothing from now on. Call it before the store is closed. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#recent.values()) clearTimeout(timer);
    this.#recent.clear();
  }

  #announce(key: string, topic: string, text: Buffer): void {
    const timer = setTimeout(() => {
      this.#recent.delete(key);
      if (announcement.repeat !== undefined) this.#announce(key, topic, text);
    }, repeatMs).unref();
    const announcement: Announcement = { timer, repeat: undefined };
    this.#recent.set(key, announcement);
    this.#changes.publish(topic, text).catch(this.#onFailed);
  }
}
