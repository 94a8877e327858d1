import type { Reason } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import { detach } from '../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents, CloseOptions, QueuedMessage, RequestIds, Sent } from './backend.ts';

/**
 * A backend behind which another one can take the place of the first, before the user has got an answer. The user does not
 * notice: it is closed with both, and what it paused stays paused. A subclass decides when. As long as it may, the events
 * of the first backend come through here. Those of the second one go to the user itself.
 */
export abstract class ReplaceableBackend implements Backend, BackendEvents {
  protected readonly user: BackendEvents;
  /** Undefined while there is none yet. */
  protected backend: Backend | undefined;
  protected isPaused = false;
  protected isClosed = false;
  /** Resolves when the first backend is gone, after it was replaced. Its events do not count then. */
  #replaced: Promise<void> | undefined;

  constructor(user: BackendEvents) {
    this.user = user;
  }

  get pid(): number | undefined {
    return this.backend?.pid;
  }

  protected get isReplaced(): boolean {
    return this.#replaced !== undefined;
  }

  send(message: Message, headers?: ForwardedHeaders): Sent {
    return this.backend?.send(message, headers) ?? 'ended';
  }

  pause(): void {
    this.isPaused = true;
    this.backend?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.backend?.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    this.isClosed = true;
    await Promise.all([this.backend?.close(how), this.#replaced]);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    if (!this.isReplaced) this.user.onMessages(messages, relatedRequests);
  }

  onNoise(text: Buffer, more?: number): void {
    if (!this.isReplaced) this.user.onNoise(text, more);
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    if (!this.isReplaced) this.user.onUnanswered(ids, reason, isFinal);
  }

  onState(state: string): void {
    if (!this.isReplaced) this.user.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    if (!this.isReplaced) this.user.onEnd(end);
  }

  /** Puts a backend in place, and sends it what has waited for it. */
  protected place(backend: Backend, waiting: readonly QueuedMessage[]): void {
    this.backend = backend;
    if (this.isPaused) backend.pause();
    for (const { message, headers } of waiting) backend.send(message, headers);
  }

  /** Ends the first backend, and puts another one in its place, whose events go to the user. */
  protected replace(open: (user: BackendEvents) => Backend, waiting: readonly QueuedMessage[]): void {
    this.leave();
    this.place(open(this.user), waiting);
  }

  /** Ends the first backend. Its events do not count any more. */
  protected leave(): void {
    this.#replaced = this.backend?.close();
    detach('backend', this.#replaced);
  }
}
