import type { Instances, MailboxBatch } from '../../store/instances.ts';
import { detach } from '../../util/boundary.ts';

/** Options of `Acks`. */
export interface AcksOptions {
  readonly instances: Instances;
  /** Batches of this size are acknowledged at once, because their senders may wait for the room (P8). */
  readonly atOnceBytes: number;
  onFailed(cause: unknown): void;
}

/**
 * Smaller batches are acknowledged together, at most this much later. Each one alone would cost the store as much as
 * its delivery.
 */
const batchMs = 50;

/** Acknowledges messages that were taken from a mailbox, so that the store frees their room. */
export class Acks {
  readonly #options: AcksOptions;
  #newest: { readonly name: string; readonly ackToken: string } | undefined;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AcksOptions) {
    this.#options = options;
  }

  /** All messages of this batch were handled. */
  add(name: string, { messages, ackToken }: MailboxBatch): void {
    if (this.#newest !== undefined && this.#newest.name !== name) this.#acknowledge();
    this.#newest = { name, ackToken };
    for (const { content } of messages) this.#bytes += content.length;
    if (this.#bytes >= this.#options.atOnceBytes) this.#acknowledge();
    else this.#timer ??= setTimeout(() => this.#acknowledge(), batchMs).unref();
  }

  #acknowledge(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#bytes = 0;
    const acked = this.#newest;
    this.#newest = undefined;
    if (acked === undefined) return;
    const { instances, onFailed } = this.#options;
    // An ack token covers all earlier batches too.
    detach('cluster', instances.acknowledge(acked.name, acked.ackToken).catch(onFailed));
  }
}
