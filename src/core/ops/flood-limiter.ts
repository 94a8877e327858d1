/**
 * The minimum time between two reports of one kind. A flood of unauthenticated requests must not become a flood of
 * lines.
 */
const reportIntervalMs = 1_000;

interface Window<T> {
  newest: T;
  leftOut: number;
  readonly timer: NodeJS.Timeout;
}

/**
 * Limits reports to one a second for each kind. The first item of a kind is reported at once. Of the items that follow
 * within a second, only the newest is reported, with the number of skipped items. Kinds are few and never chosen by a
 * peer.
 */
export class FloodLimiter<T> {
  readonly #emit: (item: T, leftOut: number) => void;
  readonly #windows = new Map<string, Window<T>>();

  constructor(emit: (item: T, leftOut: number) => void) {
    this.#emit = emit;
  }

  report(kind: string, item: T): void {
    const open = this.#windows.get(kind);
    if (open === undefined) {
      this.#emit(item, 0);
      this.#open(kind, item);
      return;
    }
    open.newest = item;
    open.leftOut += 1;
  }

  /** Reports all waiting items now. */
  flush(): void {
    for (const kind of [...this.#windows.keys()]) this.#close(kind);
  }

  #open(kind: string, newest: T): void {
    const timer = setTimeout(() => {
      const reported = this.#close(kind);
      if (reported !== undefined) this.#open(kind, reported);
    }, reportIntervalMs).unref();
    this.#windows.set(kind, { newest, leftOut: 0, timer });
  }

  /** Closes the window of a kind, and returns the item that this reported, if any. */
  #close(kind: string): T | undefined {
    const window = this.#windows.get(kind);
    if (window === undefined) return undefined;
    clearTimeout(window.timer);
    this.#windows.delete(kind);
    if (window.leftOut === 0) return undefined;
    this.#emit(window.newest, window.leftOut - 1);
    return window.newest;
  }
}
