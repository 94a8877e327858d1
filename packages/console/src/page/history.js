import { request } from './api.js';

/** The ranges of the plots: their names, and how often the page asks for new steps. */
export const ranges = {
  '5m': { label: '5 minutes', pollMs: 2_000 },
  '1h': { label: '1 hour', pollMs: 5_000 },
  '24h': { label: '24 hours', pollMs: 60_000 },
};

/** The numbers of the chosen range. The page asks only for the steps that it does not have, and only while it is seen. */
export class History {
  #range = '5m';
  #listeners = [];
  #timer;
  /** The tracks by subject: the empty name is the instance. */
  #tracks = new Map();
  #newest = -1;

  /** @param {(trackOf: (server: string) => object | undefined) => void} listener hears every change */
  on(listener) {
    this.#listeners.push(listener);
  }

  /** The chosen range. */
  get range() {
    return this.#range;
  }

  /** Starts to ask, until the page is closed. */
  start() {
    document.addEventListener('visibilitychange', () => this.#poll());
    void this.#poll();
  }

  /** Changes the range. */
  show(range) {
    this.#range = range;
    this.#forget();
    void this.#poll();
  }

  #forget() {
    this.#tracks = new Map();
    this.#newest = -1;
  }

  async #poll() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const range = this.#range;
    try {
      const response = await request(`status/history?${new URLSearchParams({ range, after: this.#newest })}`);
      if (response.ok && range === this.#range) this.#add(await response.json());
    } catch {
      // Expected while the gateway is away. The page says so, and the next attempt follows.
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#poll(), ranges[this.#range].pollMs);
  }

  /** Adds new steps at the end of each track. A gateway with an older newest step is another one. */
  #add({ newest, steps, stepMs, endsAt, instance, servers }) {
    if (newest < this.#newest) {
      this.#forget();
      return;
    }
    const added = instance.calls.length;
    const end = endsAt / 1_000;
    const step = stepMs / 1_000;
    const before = this.#tracks;
    const count = Math.min(steps, (before.get('')?.times.length ?? 0) + added);
    const times = Array.from({ length: count }, (_, index) => end - (count - 1 - index) * step);
    const span = [end - (steps - 1) * step, end];
    this.#tracks = new Map(
      [['', instance], ...Object.entries(servers)].map(([name, values]) => [
        name,
        { times, span, steps, values: append(before.get(name)?.values, values, count) },
      ]),
    );
    this.#newest = newest;
    for (const listener of this.#listeners) listener((server) => this.#tracks.get(server));
  }
}

/** Appends values to each series, and drops the oldest ones. A server that is new has no values before. */
function append(before = {}, added, count) {
  return Object.fromEntries(
    Object.entries(added).map(([key, values]) => {
      const all = [...(before[key] ?? []), ...values].slice(-count);
      return [key, [...new Array(count - all.length).fill(null), ...all]];
    }),
  );
}
