import type { RequestIds } from '../../backend/backend.ts';
import { detach } from '../../util/boundary.ts';

/** A line of the server. */
export interface ServerLine {
  readonly text: Buffer;
  /** As `BackendEvents.onMessages` has it. */
  readonly relatedRequests: RequestIds | undefined;
  /** Not a line, but what the backend told after the lines before (`BackendEvents.onState`). */
  readonly state?: string;
}

/** What an intake needs. */
export interface BackpressureQueueOptions {
  /** How much is handled before it is stored and sent. */
  readonly portion: { readonly lines: number; readonly bytes: number };
  /** Brings one line to where it belongs. */
  handle(line: ServerLine): void;
  /** Starts to store what was handled. Returns a promise where the next portion has to wait for that. */
  flush(): Promise<void> | undefined;
  /** Handling a line, or storing what came of it, has failed: nothing more is handled. */
  onFault(cause: unknown): void;
  /** Stops and starts reading from the server. */
  pause(): void;
  resume(): void;
}

/**
 * Takes the server's lines in portions, each stored before the next one is handled, and pauses the server while it is
 * ahead (P8): a burst never reaches the log at once, where it would evict what a connected client has not been sent yet.
 * At most what one read of the pipe brought waits here.
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

  /** Takes lines of the server, in order. */
  take(lines: readonly ServerLine[]): void {
    if (this.#isFaulty) return;
    const left = this.#waiting.slice(this.#handled);
    this.#waiting = left.length > 0 ? left.concat(lines) : lines;
    this.#handled = 0;
    if (!this.#isRunning) detach('session', this.#run());
  }

  /** Handles nothing more while a client lags too far behind, and goes on when it has caught up. */
  setPaused(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#pause(true);
    else if (!this.#isRunning) detach('session', this.#run());
  }

  /** Handles all that waits at once: the server has ended, nothing more will come. */
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

  /** A server's line must not end more than the session that it is for. */
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
