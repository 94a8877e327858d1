import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { QuotaAccount } from './account.ts';

/** The quota use of an HTTP request, or of a WebSocket, from its admission until its end. */
export class RequestPermit {
  readonly #accounts: readonly QuotaAccount[];
  #bytes: number;
  #isReleased = false;

  /** @param accounts in which the permit is counted */
  constructor(accounts: readonly QuotaAccount[], bytes: number, nowMs: number) {
    this.#accounts = accounts;
    this.#bytes = bytes;
    for (const account of accounts) {
      account.streams += 1;
      account.bytes += bytes;
      account.countRequests(1, nowMs);
    }
  }

  /**
   * Counts the messages of the body, once it was read: the request may not have declared its length. A batch was
   * admitted as one request. Its other messages are counted now, which delays the next requests.
   */
  countMessages(messages: readonly Message[]): void {
    if (this.#accounts.length === 0) return;
    const bytes = countBytes(messages);
    if (messages.length > 1) this.#count(messages.length - 1, performance.now());
    if (!this.#isReleased && bytes !== this.#bytes) this.#addBytes(bytes - this.#bytes);
  }

  /**
   * Admits messages on an open connection. An empty list stands for a text that is no message, and counts as one.
   * @returns the reason if the messages are refused, or a function to call when they were handled
   */
  admitNext(messages: readonly Message[]): Reason | (() => void) {
    const bytes = countBytes(messages);
    const nowMs = performance.now();
    for (const account of this.#accounts) {
      const refusal = account.requestRefusal(bytes, nowMs);
      if (refusal !== undefined) return refusal;
    }
    this.#count(Math.max(messages.length, 1), nowMs);
    this.#addBytes(bytes);
    let isCounted = true;
    return () => {
      if (isCounted && !this.#isReleased) this.#addBytes(-bytes);
      isCounted = false;
    };
  }

  /** Releases everything that the permit counts. Idempotent. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#addBytes(-this.#bytes);
    for (const account of this.#accounts) account.streams -= 1;
  }

  #count(messages: number, nowMs: number): void {
    for (const account of this.#accounts) account.countRequests(messages, nowMs);
  }

  #addBytes(bytes: number): void {
    this.#bytes += bytes;
    for (const account of this.#accounts) account.bytes += bytes;
  }
}

/** The permit if nothing is counted. */
export const uncountedRequestPermit = new RequestPermit([], 0, 0);

function countBytes(messages: readonly Message[]): number {
  let bytes = 0;
  for (const { text } of messages) bytes += text.length;
  return bytes;
}
