import type { RequestIds } from '../../backend/backend.ts';
import type { Message } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';

/** What a backend reports in order: a message of its server, or a state of its own behind the messages before it. */
export type ServerOutput =
  | {
      readonly message: Message;
      /** As in `BackendEvents.onMessages`. */
      readonly relatedRequests: RequestIds | undefined;
    }
  | { /** As in `BackendEvents.onState`. */ readonly state: string };

/** Options of `BackpressureQueue`. */
export interface BackpressureQueueOptions {
  /** How much is handled before it is stored and sent. */
  readonly portion: { readonly messages: number; readonly bytes: number };
  /** Routes one message, or notes a state. */
  handle(output: ServerOutput): void;
  /** Starts to store the handled messages. Returns a promise if the next portion has to wait for that. */
  flush(): Promise<void> | undefined;
  /** Handling or storing a message has failed. Nothing more is handled. */
  onFault(cause: unknown): void;
  /** Stops and starts reading from the server. */
  pause(): void;
  resume(): void;
}

/**
 * Handles the server's messages in portions and stores each portion before the next one. It pauses the server while that
 * is ahead (P8). A burst thus never reaches the log at once, where it would evict events that a connected client has
 * not been sent. At most the messages of one read of the pipe wait here.
 */
export class BackpressureQueue {
  readonly #options: BackpressureQueueOptions;
  #waiting: readonly ServerOutput[] = [];
  /** How much of the waiting output is handled. */
  #handled = 0;
  #isHeld = false;
  #isRunning = false;
  #isPaused = false;
  #isFaulty = false;

  constructor(options: BackpressureQueueOptions) {
    this.#options = options;
  }

  /** Queues output of the server, in order. */
  take(output: readonly ServerOutput[]): void {
    if (this.#isFaulty) return;
    const remaining = this.#waiting.slice(this.#handled);
    this.#waiting = remaining.length > 0 ? remaining.concat(output) : output;
    this.#handled = 0;
    if (!this.#isRunning) detach('session', this.#run());
  }

  /** Stops handling while a client lags too far behind, and continues when it has caught up. */
  setPaused(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#pause(true);
    else if (!this.#isRunning) detach('session', this.#run());
  }

  /** Handles all waiting output at once: the server has ended, so no more will come. */
  drain(): void {
    const remaining = this.#waiting.slice(this.#handled);
    this.#handled = this.#waiting.length;
    if (this.#isFaulty) return;
    try {
      for (const output of remaining) this.#options.handle(output);
      detach('session', this.#options.flush());
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** Limits a fault in a server's message to its session. */
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
    let messages = 0;
    for (let output = this.#waiting[this.#handled]; output !== undefined; output = this.#waiting[this.#handled]) {
      if (messages > 0 && (messages >= portion.messages || bytes >= portion.bytes)) return;
      this.#handled += 1;
      messages += 1;
      if ('message' in output) bytes += output.message.text.length;
      handle(output);
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
