import { ask } from './api.js';
import { readEvents } from './event-stream.js';

const firstPauseMs = 500;
const maxPauseMs = 5_000;

/**
 * What the gateway tells while the page is open. A page that nobody sees (another tab is in front) does not listen, so that
 * it costs nothing.
 */
export class Live {
  #wish = { search: '', session: '', server: '' };
  #abort = new AbortController();
  #listeners = new Map();
  #onLink;
  #pauseMs = firstPauseMs;

  /** @param {(state: 'live' | 'away' | 'hidden' | 'refused') => void} onLink whether the gateway is heard */
  constructor(onLink) {
    this.#onLink = onLink;
  }

  /** @param {'state' | 'happened' | 'flow' | 'watched'} type */
  on(type, listener) {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  /** Listens until the page is closed. */
  start() {
    document.addEventListener('visibilitychange', () => this.#again());
    void this.#listen();
  }

  /** What is wanted beside the usual: sessions that a text is found in, the messages of one session. */
  wish(wish) {
    const before = JSON.stringify(this.#wish);
    this.#wish = { ...this.#wish, ...wish };
    if (JSON.stringify(this.#wish) !== before) this.#again();
  }

  #again() {
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
        const response = await ask(`status/events?${new URLSearchParams(this.#wish)}`, { signal });
        if (!response.ok) throw Object.assign(new Error(response.statusText), { status: response.status });
        this.#onLink('live');
        this.#pauseMs = firstPauseMs;
        for await (const { type, data } of readEvents(response.body)) {
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
}

const aborted = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve, { once: true });
  });
