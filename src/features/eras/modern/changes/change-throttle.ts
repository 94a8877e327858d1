import { createHash } from 'node:crypto';
import { retryWhileUnavailable } from '../../../../core/store/retry-unavailable.ts';
import type { Changes } from '../../../../core/store/shared/shared-data.ts';
import { ifUnavailable } from '../../../../core/store/store-unavailable.ts';
import { detach } from '../../../../core/util/boundary.ts';

/** How long announcements of one change are counted (P8). */
const windowMs = 1_000;

/**
 * How often one change is announced within that time, so that clients see each of a few calls that change a resource. A
 * client that sees one of more reads the newest state anyway.
 */
const maxAtOnce = 10;

/**
 * How many announcements there are within that time (P8). Beyond them the announcement says that anything may have
 * changed. The second half is for changes that have not been announced yet.
 */
const maxRecent = 1_000;

/** Announced in place of a change: anything may have changed. */
export const anyChange = Buffer.alloc(0);

interface Announcement {
  readonly timer: NodeJS.Timeout;
  /** How often the change was announced. */
  count: number;
  /** The change if it has come again since it was announced for the last time. */
  repeat: { readonly topic: string; readonly text: Buffer } | undefined;
}

/**
 * Announces to all instances the changes that the servers of groups report. A change is announced at once, up to ten
 * times within a second; what comes after that is announced once at the end of that second.
 */
export class ChangeThrottle {
  readonly #changes: Changes;
  readonly #onFailed: (cause: unknown) => void;
  readonly #recent = new Map<string, Announcement>();
  readonly #loss: Buffer | undefined;
  /** The topics of changes that could not be announced. There are no more of them than groups with subscribers. */
  readonly #unannounced = new Set<string>();
  readonly #closing = new AbortController();
  /** The announcements that the entries of the table count. */
  #count = 0;
  #isClosed = false;

  /**
   * @param onFailed called when a change could not be announced
   * @param loss announced in place of such a change as soon as the store is back; absent if `onFailed` does that
   */
  constructor(changes: Changes, onFailed: (cause: unknown) => void, loss?: Buffer) {
    this.#changes = changes;
    this.#onFailed = onFailed;
    this.#loss = loss;
  }

  notify(topic: string, text: Buffer): void {
    if (this.#isClosed) return;
    const key = `${topic} ${createHash('sha256').update(text).digest('base64url')}`;
    const recent = this.#recent.get(key);
    if (recent !== undefined) this.#repeat(recent, topic, text);
    else if (this.#count < maxRecent || text === anyChange) this.#begin(key, topic, text);
    else this.notify(topic, anyChange);
  }

  /** Drops the repeats that are still due and announces nothing from now on. Call it before the store is closed. */
  close(): void {
    this.#isClosed = true;
    this.#closing.abort();
    for (const { timer } of this.#recent.values()) clearTimeout(timer);
    this.#recent.clear();
  }

  #repeat(recent: Announcement, topic: string, text: Buffer): void {
    if (recent.repeat !== undefined || recent.count >= maxAtOnce || this.#count >= maxRecent / 2)
      recent.repeat = { topic, text };
    else this.#announce(recent, topic, text);
  }

  #begin(key: string, topic: string, text: Buffer): void {
    const timer = setTimeout(() => {
      this.#recent.delete(key);
      this.#count -= announcement.count;
      if (announcement.repeat !== undefined) this.#begin(key, topic, text);
    }, windowMs).unref();
    const announcement: Announcement = { timer, count: 0, repeat: undefined };
    this.#recent.set(key, announcement);
    this.#announce(announcement, topic, text);
  }

  #announce(announcement: Announcement, topic: string, text: Buffer): void {
    announcement.count += 1;
    this.#count += 1;
    this.#changes.publish(topic, text).catch((cause: unknown) => {
      this.#onFailed(cause);
      this.#announceLoss(topic);
    });
  }

  /** Nobody else knows of a change that the store did not take: what it has is complete in itself. */
  #announceLoss(topic: string): void {
    const loss = this.#loss;
    if (loss === undefined || this.#unannounced.has(topic)) return;
    this.#unannounced.add(topic);
    const announced = retryWhileUnavailable(() => this.#changes.publish(topic, loss), this.#closing.signal)
      .catch(ifUnavailable(undefined)) // the exchange ends while the store is away
      .finally(() => this.#unannounced.delete(topic));
    detach('session', announced);
  }
}
