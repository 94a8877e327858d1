import type { Instances, MailboxBatch } from '../../store/instances.ts';
import { detach } from '../../util/boundary.ts';

/** What the receipts need. */
export interface AcksOptions {
  readonly instances: Instances;
  /** Deliveries of so many bytes are freed at once: their senders may wait for the room (P8). */
  readonly atOnceBytes: number;
  onFailed(cause: unknown): void;
}

/** Others are freed together, at most this much later: to free each by itself costs the store as much as its delivery. */
const laterMs = 50;

/** What was taken from a mailbox and is to be freed there. */
export class Acks {
  readonly #options: AcksOptions;
  #newest: { readonly name: string; readonly receipt: string } | undefined;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AcksOptions) {
    this.#options = options;
  }

  /** All letters of a delivery to this name were acted on. */
  add(name: string, { messages: letters, ackToken: receipt }: MailboxBatch): void {
    if (this.#newest !== undefined && this.#newest.name !== name) this.#free();
    this.#newest = { name, receipt };
    for (const { content } of letters) this.#bytes += content.length;
    if (this.#bytes >= this.#options.atOnceBytes) this.#free();
    else this.#timer ??= setTimeout(() => this.#free(), laterMs).unref();
  }

  #free(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#bytes = 0;
    const freed = this.#newest;
    this.#newest = undefined;
    if (freed === undefined) return;
    const { instances, onFailed } = this.#options;
    // A receipt frees what came before it too.
    detach('cluster', instances.acknowledge(freed.name, freed.receipt).catch(onFailed));
  }
}
