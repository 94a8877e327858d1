import type { RequestIds } from '../../backend/backend.ts';
import { detach } from '../../util/boundary.ts';

/** A line of the server. */
export interface ServerLine {
  readonly text: Buffer;
  /** As in `BackendEvents.onMessages`. */
  readonly relatedRequests: RequestIds | undefined;
  /** Set for a backend state instead of a line (`BackendEvents.onState`). It follows the lines before it. */
  readonly state?: string;
}

/** Options of `BackpressureQueue`. */
export interface BackpressureQueueOptions {
  /** How much is handled before it is stored and sent. */
  readonly portion: { readonly lines: number; readonly bytes: number };
  /** Routes one line. */
  handle(line: ServerLine): void;
  /** Starts to store the handled lines. Returns a promise if the next portion has to wait for that. */
  flush(): Promise<void> | undefined;
  /** Handling or storing a line has failed. Nothing more is handled. */
  onFault(cause: unknown): void;
  /** Stops and starts reading from the server. */
  pause(): void;
  resume(): void;
}

/**
 * Handles the server's lines in portions and stores each portion before the next one. It pauses the server while that
 * is ahead (P8). A burst thus never reaches the log at once, where it would evict events that a connected client has
 * not been sent. At most the lines of one read of the pipe wait here.
 */
export class BackpressureQueue {
  readonly #options: BackpressureQueueOptions;
  #waiting: readonly ServerLine[] = [];
  /** How many of the waiting lines are handled. */
  #handled = 0;
  #isHeld = false;
  #isRunning = false;
  #isPaused = false;
  #isFaulty = false;

  constructor(options: BackpressureQueueOptions) {
    this.#options = options;
  }

  /** Queues lines of the server, in order. */
  take(lines: readonly ServerLine[]): void {
    if (this.#isFaulty) return;
    const remaining = this.#waiting.slice(this.#handled);
    this.#waiting = remaining.length > 0 ? remaining.concat(lines) : lines;
    this.#handled = 0;
    if (!this.#isRunning) detach('session', this.#run());
  }

  /** Stops handling while a client lags too far behind, and continues when it has caught up. */
  setPaused(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#pause(true);
    else if (!this.#isRunning) detach('session', this.#run());
  }

  /** Handles all waiting lines at once: the server has ended, so no more will come. */
  drain(): void {
    const lines = this.#waiting.slice(this.#handled);
    this.#handled = this.#waiting.length;
    if (this.#isFaulty) return;
    try {
      for (const line of lines) this.#options.handle(line);
      detach('session', this.#options.flush());
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** Limits a fault in a server's line to its session. */
  #fail(cause: unknown): void {
    if (this.#isFaulty) return;
    this.#isFaulty = true;
    this.#waiting = [];
    this.#handled = 0;
    this.#options.onFault(cause);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#handled < this.#waiting.length && !this.#isHeld) {
        this.#handlePortion();
        const stored = this.#options.flush();
        if (stored === undefined) continue;
        this.#pause(true);
        await stored;
      }
    } catch (cause) {
      this.#fail(cause);
    }
    this.#isRunning = false;
    this.#pause(this.#isHeld);
  }

  #handlePortion(): void {
    const { portion, handle } = this.#options;
    let bytes = 0;
    let lines = 0;
    for (let line = this.#waiting[this.#handled]; line !== undefined; line = this.#waiting[this.#handled]) {
      if (lines > 0 && (lines >= portion.lines || bytes >= portion.bytes)) return;
      this.#handled += 1;
      lines += 1;
      bytes += line.text.length;
      handle(line);
    }
    this.#waiting = [];
    this.#handled = 0;
  }

  #pause(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#options.pause();
    else this.#options.resume();
  }
}
