import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { noHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import { detach } from '../util/boundary.ts';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  type CloseOptions,
  closedByGateway,
  type OpenBackend,
  type OpenOptions,
  type QueuedMessage,
} from './backend.ts';
import { maxWaitingBytes } from './waiting-budget.ts';

/** How to open a backend, or why it cannot be opened. */
export type Opening = OpenBackend | BackendEnd;

/** A backend whose server must be made ready first, such as by an installation. Messages wait, in order. */
export class LaterBackend implements Backend {
  readonly #events: BackendEvents;
  readonly #opening: Promise<void>;
  #backend: Backend | undefined;
  #waiting: QueuedMessage[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #isOver = false;

  /** @param ready settles when the server is ready; never rejects */
  constructor(ready: Promise<Opening>, events: BackendEvents, options: OpenOptions | undefined) {
    this.#events = events;
    this.#opening = ready.then((opening) => this.#open(opening, options));
    detach('backend', this.#opening);
  }

  get pid(): number | undefined {
    return this.#backend?.pid;
  }

  send(message: Message, headers: ForwardedHeaders = noHeaders): 'sent' | 'full' | 'ended' {
    if (this.#backend !== undefined) return this.#backend.send(message, headers);
    if (this.#isOver) return 'ended';
    const bytes = this.#waitingBytes + message.text.length;
    if (bytes > maxWaitingBytes) return 'full';
    this.#waitingBytes = bytes;
    this.#waiting.push({ message, headers });
    return 'sent';
  }

  pause(): void {
    this.#isPaused = true;
    this.#backend?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#backend?.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    if (this.#backend !== undefined) return this.#backend.close(how);
    if (this.#isOver) return;
    // What makes the server ready goes on: the next session needs it.
    await Promise.resolve();
    this.#end(closedByGateway);
  }

  #open(opening: Opening, options: OpenOptions | undefined): void {
    if (this.#isOver) return;
    if (typeof opening !== 'function') return this.#end(opening);
    const backend = opening(this.#events, options);
    this.#backend = backend;
    if (this.#isPaused) backend.pause();
    for (const { message, headers } of this.#waiting.splice(0)) backend.send(message, headers);
  }

  #end(end: BackendEnd): void {
    if (this.#isOver || this.#backend !== undefined) return;
    this.#isOver = true;
    this.#waiting = [];
    this.#events.onEnd(end);
  }
}
