import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { HeldBytes } from '../../util/held-bytes.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';

/** A message and its headers; see `ServerLink.send`. */
export interface UnsentMessage {
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/** Options of `UnsentMessages`. */
export interface UnsentMessagesOptions {
  /** The most bytes of all messages (P8). */
  readonly maxBytes: number;
  /** The longest wait of a message, in milliseconds; undefined if something else ends the wait. */
  readonly maxMs: number | undefined;
  /** A message has waited too long and is not sent any more. */
  onExpired(message: Message): void;
}

/** The messages of a session that wait for its server, in order. */
export class UnsentMessages {
  readonly #options: UnsentMessagesOptions;
  #entries: (UnsentMessage & { readonly since: number })[] = [];
  readonly #held = new HeldBytes();
  #timer: TimeLimit | undefined;
  #maxMs: number | undefined;

  constructor(options: UnsentMessagesOptions) {
    this.#options = options;
    this.#maxMs = options.maxMs;
  }

  /** Shortens the longest wait, until the messages are taken. */
  limitTo(maxMs: number): void {
    if (this.#maxMs === undefined || this.#maxMs <= maxMs) return;
    this.#maxMs = maxMs;
    this.#timer?.clear();
    this.#timer = undefined;
    if (this.#entries.length > 0) this.#expire();
  }

  /** False if there is no room for the message. */
  add({ message, headers }: UnsentMessage): boolean {
    if (this.#held.bytes + message.text.length > this.#options.maxBytes) return false;
    this.#entries.push({ message, headers, since: performance.now() });
    this.#held.bytes += message.text.length;
    if (this.#maxMs !== undefined) this.#timer ??= new TimeLimit(() => this.#expire(), this.#maxMs);
    return true;
  }

  /** True if the request with this id waits. */
  hasRequest(id: RequestId): boolean {
    return this.#entries.some(({ message }) => message.kind === 'request' && message.id === id);
  }

  /** Removes and returns all messages. */
  takeAll(): readonly UnsentMessage[] {
    const entries = this.#entries;
    this.#entries = [];
    this.#held.bytes = 0;
    this.#timer?.clear();
    this.#timer = undefined;
    this.#maxMs = this.#options.maxMs;
    return entries;
  }

  #expire(): void {
    const newest = performance.now() - (this.#maxMs ?? 0);
    const fresh = this.#entries.findIndex(({ since }) => since > newest);
    const expired = this.#entries.splice(0, fresh < 0 ? this.#entries.length : fresh);
    const [next] = this.#entries;
    // A timer can run early by a part of a millisecond.
    this.#timer = next && new TimeLimit(() => this.#expire(), Math.ceil(next.since - newest));
    for (const { message } of expired) {
      this.#held.bytes -= message.text.length;
      this.#options.onExpired(message);
    }
  }
}
