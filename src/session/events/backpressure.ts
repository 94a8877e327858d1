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

const noOutput: readonly ServerOutput[] = [];

/** The stages around a queue: the server before it, and the log behind it. */
export interface QueueStages {
  /** How much is handled before it is stored and sent. */
  readonly portion: { readonly messages: number; readonly bytes: number };
  /** Routes one message, or notes a state. */
  handle(output: ServerOutput): void;
  /** Starts to store the handled messages. Returns a promise if the next portion has to wait for that. */
  storePortion(): Promise<void> | undefined;
  /** Handling or storing a message has failed. Nothing more is handled. */
  fail(cause: unknown): void;
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
  readonly #stages: QueueStages;
  #waiting: readonly ServerOutput[] = noOutput;
  /** How much of the waiting output is handled. */
  #handled = 0;
  #isHeld = false;
  #isRunning = false;
  #isPaused = false;
  #isFaulty = false;

  constructor(stages: QueueStages) {
    this.#stages = stages;
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
      for (const output of remaining) this.#stages.handle(output);
      detach('session', this.#stages.storePortion());
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** Limits a fault in a server's message to its session. */
  #fail(cause: unknown): void {
    if (this.#isFaulty) return;
    this.#isFaulty = true;
    this.#waiting = noOutput;
    this.#handled = 0;
    this.#stages.fail(cause);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#handled < this.#waiting.length && !this.#isHeld) {
        this.#handlePortion();
        const stored = this.#stages.storePortion();
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
    const { portion } = this.#stages;
    let bytes = 0;
    let messages = 0;
    for (let output = this.#waiting[this.#handled]; output !== undefined; output = this.#waiting[this.#handled]) {
      if (messages > 0 && (messages >= portion.messages || bytes >= portion.bytes)) return;
      messages += 1;
      this.#handled += 1;
      if ('message' in output) bytes += output.message.text.length;
      this.#stages.handle(output);
    }
    this.#waiting = noOutput;
    this.#handled = 0;
  }

  #pause(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#stages.pause();
    else this.#stages.resume();
  }
}
