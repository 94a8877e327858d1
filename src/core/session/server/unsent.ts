import type { Outgoing } from '../../backend/link/link.ts';
import { WaitingList } from '../../backend/waiting-budget.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';

/** On the monotonic clock, in milliseconds. */
type Unsent = Outgoing & { readonly since: number };

/** The messages of a session that wait for its server, in order. */
export class UnsentMessages extends WaitingList<Unsent> {
  readonly #usualMs: number | undefined;
  readonly #onExpired: (message: Message) => void;
  #timer: TimeLimit | undefined;
  #maxMs: number | undefined;

  /**
   * @param maxBytes the most bytes of all messages (P8)
   * @param usualMs the longest wait of a message, in milliseconds; undefined if something else ends the wait
   * @param onExpired a message has waited too long and is not sent any more
   */
  constructor(maxBytes: number, usualMs: number | undefined, onExpired: (message: Message) => void) {
    super(({ message }) => message.text.length, maxBytes);
    this.#usualMs = usualMs;
    this.#maxMs = usualMs;
    this.#onExpired = onExpired;
  }

  /** Shortens the longest wait, until the messages are taken. */
  limitTo(maxMs: number): void {
    if (this.#maxMs === undefined || this.#maxMs <= maxMs) return;
    this.#maxMs = maxMs;
    this.#timer?.clear();
    this.#timer = undefined;
    if (this.length > 0) this.#expire();
  }

  /** False if there is no room for the message. */
  add(outgoing: Outgoing): boolean {
    if (!this.hasRoomFor(outgoing.message.text.length)) return false;
    this.push({ ...outgoing, since: performance.now() });
    if (this.#maxMs !== undefined) this.#timer ??= new TimeLimit(() => this.#expire(), this.#maxMs);
    return true;
  }

  /** True if the request with this id waits. */
  hasRequest(id: RequestId): boolean {
    return this.find(({ message }) => message.kind === 'request' && message.id === id) !== undefined;
  }

  override takeAll(): readonly Unsent[] {
    this.#timer?.clear();
    this.#timer = undefined;
    this.#maxMs = this.#usualMs;
    return super.takeAll();
  }

  #expire(): void {
    const newest = performance.now() - (this.#maxMs ?? 0);
    const expired: Message[] = [];
    for (let next = this.first; next !== undefined && next.since <= newest; next = this.first) {
      expired.push(next.message);
      this.shift();
    }
    // A timer can run early by a part of a millisecond.
    this.#timer = this.first && new TimeLimit(() => this.#expire(), Math.ceil(this.first.since - newest));
    for (const message of expired) this.#onExpired(message);
  }
}
