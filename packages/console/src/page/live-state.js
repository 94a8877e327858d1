import { request } from './api.js';
import { readEvents } from './event-stream.js';

const firstPauseMs = 500;
const maxPauseMs = 5_000;

/** The gateway sends its state every second. Without any for this time, the page says so. */
const staleMs = 5_000;

/**
 * Receives the state, events and messages of the gateway while the page is open. A hidden page (another tab is in
 * front) does not listen, so that it costs nothing.
 */
export class Live {
  #subscription = { search: '', page: 0, everywhere: 0, of: '', failed: 0, order: '', session: '', server: '' };
  #abort = new AbortController();
  #listeners = new Map();
  #onLink;
  #pauseMs = firstPauseMs;
  #heardAt;

  /**
   * @param {(state: 'live' | 'stale' | 'away' | 'hidden' | 'refused', heardAt: number | undefined) => void} onLink
   *   receives the state of the connection, and when the gateway was heard last
   */
  constructor(onLink) {
    this.#onLink = (state) => onLink(state, this.#heardAt);
  }

  /** @param {'state' | 'happened' | 'failed' | 'flow' | 'watched'} type */
  on(type, listener) {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  /** Starts to listen, until the page is closed. */
  start() {
    document.addEventListener('visibilitychange', () => this.#restart());
    void this.#listen();
  }

  /**
   * Changes the subscription: which sessions are wanted and in which order, whether those of other instances are wanted
   * (1 or 0), and the session whose messages are shown.
   */
  subscribe(changes) {
    const before = JSON.stringify(this.#subscription);
    this.#subscription = { ...this.#subscription, ...changes };
    if (JSON.stringify(this.#subscription) !== before) this.#restart();
  }

  #restart() {
    this.#pauseMs = firstPauseMs;
    this.#abort.abort();
  }

  async #listen() {
    for (;;) {
      this.#abort = new AbortController();
      const { signal } = this.#abort;
      if (document.hidden) {
        this.#onLink('hidden');
        await aborted(signal);
        continue;
      }
      try {
        const response = await request(`status/events?${new URLSearchParams(this.#subscription)}`, { signal });
        if (!response.ok) throw Object.assign(new Error(response.statusText), { status: response.status });
        this.#onLink('live');
        this.#pauseMs = firstPauseMs;
        for await (const { type, data } of this.#watchForSilence(readEvents(response.body))) {
          const value = JSON.parse(data);
          for (const listener of this.#listeners.get(type) ?? []) listener(value);
        }
      } catch (error) {
        if (signal.aborted) continue;
        this.#onLink(error.status === 401 || error.status === 403 ? 'refused' : 'away');
      }
      await Promise.race([aborted(signal), new Promise((resolve) => setTimeout(resolve, this.#pauseMs))]);
      this.#pauseMs = Math.min(this.#pauseMs * 2, maxPauseMs);
    }
  }

  /** Passes events on, and reports when none arrives for `staleMs`, as from a gateway that hangs. */
  async *#watchForSilence(events) {
    let timer;
    const expectNext = () => setTimeout(() => this.#onLink('stale'), staleMs);
    try {
      timer = expectNext();
      for await (const event of events) {
        clearTimeout(timer);
        this.#heardAt = Date.now();
        this.#onLink('live');
        timer = expectNext();
        yield event;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

const aborted = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve, { once: true });
  });
