import type { RequestId } from '../protocol/faults.ts';
import { scalarAt } from '../protocol/json.ts';
import { createMessage, type Message } from '../protocol/message/message.ts';
import { progressMethod } from '../protocol/message/progress-fast-path.ts';

/** How the gateway keeps a client waiting whose server is silent about its call. */
export interface SilenceOptions {
  /** The time without a message after which the client gets one, in milliseconds. */
  readonly everyMs: number;
  /** The token under which the client wants to hear of progress. */
  readonly token: RequestId;
}

/** Small beside the steps of a server, so that its next value is still larger. */
const step = 1e-6;

/**
 * A call during which its client hears of progress at least at an interval. Many clients give up after a time without
 * progress, and comments of a stream do not count for them. The values only rise, as the specification demands
 * (2025-11-25, basic/utilities/progress), and are a little above what the server has reported last.
 */
export class SilentCall {
  readonly #options: SilenceOptions;
  readonly #send: (progress: Message) => void;
  #progress = -step;
  #heardAt = performance.now();
  #timer: NodeJS.Timeout;

  /** @param send sends a message to the client */
  constructor(options: SilenceOptions, send: (progress: Message) => void) {
    this.#options = options;
    this.#send = send;
    this.#timer = setTimeout(() => this.#check(), options.everyMs);
  }

  /** The client gets a message of the server. */
  note(message: Message): void {
    this.#heardAt = performance.now();
    if (message.method !== progressMethod) return;
    const progress = scalarAt(message.text, ['params', 'progress']);
    if (typeof progress === 'number') this.#progress = Math.max(this.#progress, progress);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    const { everyMs, token } = this.#options;
    const restMs = this.#heardAt + everyMs - performance.now();
    this.#timer = setTimeout(() => this.#check(), restMs > 1 ? restMs : everyMs);
    if (restMs > 1) return;
    this.#heardAt = performance.now();
    this.#progress += Math.max(step, Math.abs(this.#progress) * step);
    this.#send(createMessage({ method: progressMethod, params: { progressToken: token, progress: this.#progress } }));
  }
}

/** The silence of a call that a client may hear about; undefined if it wants no progress, or the option is off. */
export const silenceOf = (token: RequestId | undefined, everyMs = 0): SilenceOptions | undefined =>
  everyMs > 0 && token !== undefined ? { everyMs, token } : undefined;
