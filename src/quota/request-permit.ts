import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { QuotaAccount } from './account.ts';

/** What an HTTP request, or a WebSocket, has in use from when it was let in until it is over. */
export interface RequestPermit {
  /**
   * Its body was read, of which it may not have said how long it would be. A batch was let in as one request; its other
   * messages are counted now, and whoever comes next has to wait for them.
   */
  countMessages(messages: readonly Message[]): void;
  /**
   * Messages on a connection that is open already; none for something that is no message, which counts as one.
   * @returns why they are refused, or what is to be called when they were taken
   */
  admitNext(messages: readonly Message[]): Reason | (() => void);
  /** Nothing of it is left. Idempotent. */
  release(): void;
}

/** Where nothing is counted. */
export const uncountedRequestPermit: RequestPermit = {
  countMessages: () => undefined,
  admitNext: () => () => undefined,
  release: () => undefined,
};

/** A visit that is counted in the accounts of who is there. */
export class CountedRequestPermit implements RequestPermit {
  readonly #accounts: readonly QuotaAccount[];
  #bytes: number;
  #isOver = false;

  constructor(accounts: readonly QuotaAccount[], bytes: number, nowMs: number) {
    this.#accounts = accounts;
    this.#bytes = bytes;
    for (const account of accounts) {
      account.streams += 1;
      account.bytes += bytes;
      account.countRequests(1, nowMs);
    }
  }

  countMessages(messages: readonly Message[]): void {
    const bytes = bytesOf(messages);
    if (messages.length > 1) this.#count(messages.length - 1, performance.now());
    if (!this.#isOver && bytes !== this.#bytes) this.#hold(bytes - this.#bytes);
  }

  admitNext(messages: readonly Message[]): Reason | (() => void) {
    const bytes = bytesOf(messages);
    const nowMs = performance.now();
    for (const account of this.#accounts) {
      const refused = account.refusesRequest(bytes, nowMs);
      if (refused !== undefined) return refused;
    }
    this.#count(Math.max(messages.length, 1), nowMs);
    this.#hold(bytes);
    let isHeld = true;
    return () => {
      if (isHeld && !this.#isOver) this.#hold(-bytes);
      isHeld = false;
    };
  }

  release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#hold(-this.#bytes);
    for (const account of this.#accounts) account.streams -= 1;
  }

  #count(messages: number, nowMs: number): void {
    for (const account of this.#accounts) account.countRequests(messages, nowMs);
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    for (const account of this.#accounts) account.bytes += bytes;
  }
}

function bytesOf(messages: readonly Message[]): number {
  let bytes = 0;
  for (const { text } of messages) bytes += text.length;
  return bytes;
}
