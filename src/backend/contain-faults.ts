import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import { contain, detach, reportFault } from '../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, OpenOptions, RequestIds } from './backend.ts';
import { failedBackend } from './failed-backend.ts';

/**
 * Passes events on, until the first fault. An exception of the listener goes to `fail`. It must not propagate into the
 * backend that reports the event.
 */
export abstract class GuardedEvents implements BackendEvents {
  protected readonly events: BackendEvents;
  protected isFaulty = false;

  constructor(events: BackendEvents) {
    this.events = events;
  }

  /** Ends what the events belong to, after a fault of the gateway. */
  abstract fail(cause: unknown): void;

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.#guard(() => this.events.onMessages(messages, relatedRequests));
  }

  onNoise(text: Buffer, more?: number): void {
    this.#guard(() => this.events.onNoise(text, more));
  }

  onUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    this.#guard(() => this.events.onUnanswered(...args));
  }

  onState(state: string): void {
    this.#guard(() => this.events.onState?.(state));
  }

  onEnd(end: BackendEnd): void {
    this.#guard(() => this.events.onEnd(end));
  }

  #guard(work: () => void): void {
    if (this.isFaulty) return;
    try {
      work();
    } catch (cause) {
      this.fail(cause);
    }
  }
}

/** The end of a backend after an internal error. */
export const endedByFault: BackendEnd = {
  reason: 'failed',
  detail: 'An internal error occurred while the gateway processed a message from this server. The log has the stack.',
};

/**
 * Keeps faults at the backend where they happen. An exception of the event listener, or of the backend itself, is
 * reported. It ends that backend as `failed`, once like any end.
 */
export const containFaults =
  (open: OpenBackend): OpenBackend =>
  (events, options) =>
    new ContainedBackend(events).open(open, options);

class ContainedBackend extends GuardedEvents implements Backend {
  #backend: Backend | undefined;
  #isEnded = false;

  /** Opens the backend whose faults are contained. */
  open(open: OpenBackend, options: OpenOptions | undefined): Backend {
    try {
      this.#backend = open(this, options);
      return this;
    } catch (cause) {
      reportFault('backend', cause);
      return failedBackend(Promise.resolve({ ...endedByFault, cause }), this);
    }
  }

  get pid(): number | undefined {
    return this.#backend?.pid;
  }

  send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    if (this.isFaulty || this.#backend === undefined) return 'ended';
    try {
      return this.#backend.send(message, headers);
    } catch (cause) {
      this.fail(cause);
      return 'ended';
    }
  }

  pause(): void {
    contain(
      'backend',
      () => this.#backend?.pause(),
      (cause) => this.#end(cause),
    );
  }

  resume(): void {
    contain(
      'backend',
      () => this.#backend?.resume(),
      (cause) => this.#end(cause),
    );
  }

  async close(how?: Parameters<Backend['close']>[0]): Promise<void> {
    await this.#backend?.close(how);
  }

  override onEnd(end: BackendEnd): void {
    if (!this.isFaulty) this.#reportEnd(end);
  }

  fail(cause: unknown): void {
    this.#end(cause);
    reportFault('backend', cause);
  }

  #end(cause: unknown): void {
    if (this.isFaulty) return;
    this.isFaulty = true;
    // Outside of any call into the backend, and after `open` has returned it to its caller.
    queueMicrotask(() => {
      detach('backend', this.close());
      this.#reportEnd({ ...endedByFault, cause });
    });
  }

  #reportEnd(end: BackendEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    contain('backend', () => this.events.onEnd(end));
  }
}
