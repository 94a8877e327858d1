/** So often is something of one kind told at most, in milliseconds. A flood of strangers must not become a flood of lines. */
const everyMs = 1_000;

interface Window<T> {
  newest: T;
  leftOut: number;
  readonly timer: NodeJS.Timeout;
}

/**
 * Tells of the first thing of a kind at once, and of those that follow within a second together: of the newest, with the number of
 * those before it that were left out. Kinds are few and no words of a peer.
 */
export class FloodLimiter<T> {
  readonly #tell: (thing: T, leftOut: number) => void;
  readonly #windows = new Map<string, Window<T>>();

  constructor(tell: (thing: T, leftOut: number) => void) {
    this.#tell = tell;
  }

  report(kind: string, thing: T): void {
    const open = this.#windows.get(kind);
    if (open === undefined) {
      this.#tell(thing, 0);
      this.#open(kind, thing);
      return;
    }
    open.newest = thing;
    open.leftOut += 1;
  }

  /** Tells now of all that would have been told later. */
  flush(): void {
    for (const kind of [...this.#windows.keys()]) this.#close(kind);
  }

  #open(kind: string, newest: T): void {
    const timer = setTimeout(() => {
      const again = this.#close(kind);
      if (again !== undefined) this.#open(kind, again);
    }, everyMs).unref();
    this.#windows.set(kind, { newest, leftOut: 0, timer });
  }

  /** What was told of, if anything was. */
  #close(kind: string): T | undefined {
    const window = this.#windows.get(kind);
    if (window === undefined) return undefined;
    clearTimeout(window.timer);
    this.#windows.delete(kind);
    if (window.leftOut === 0) return undefined;
    this.#tell(window.newest, window.leftOut - 1);
    return window.newest;
  }
}
