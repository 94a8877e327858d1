import type { Reason } from '../../protocol/faults.ts';
import type { Account } from './account.ts';

/** What an HTTP request, or a WebSocket, has in use from when it was let in until it is over. */
export interface Visit {
  /**
   * Its body was read. A batch was let in as one request; its other messages are counted now, and have to be waited for by
   * who comes next.
   * @param bytes of the body; it may have come without saying how many they would be
   */
  read(messages: number, bytes: number): void;
  /**
   * Messages on a connection that is open already.
   * @returns why they are refused, or what is to be called when they were taken
   */
  next(messages: number, bytes: number): Reason | (() => void);
  /** Nothing of it is left. Idempotent. */
  leave(): void;
}

/** Where nothing is counted. */
export const uncounted: Visit = { read: () => undefined, next: () => () => undefined, leave: () => undefined };

/** A visit that is counted in the accounts of who is there. */
export class CountedVisit implements Visit {
  readonly #accounts: readonly Account[];
  #bytes: number;
  #isOver = false;

  constructor(accounts: readonly Account[], bytes: number, nowMs: number) {
    this.#accounts = accounts;
    this.#bytes = bytes;
    for (const account of accounts) {
      account.streams += 1;
      account.bytes += bytes;
      account.countRequests(1, nowMs);
    }
  }

  read(messages: number, bytes: number): void {
    if (messages > 1) this.#count(messages - 1, performance.now());
    if (!this.#isOver && bytes !== this.#bytes) this.#hold(bytes - this.#bytes);
  }

  next(messages: number, bytes: number): Reason | (() => void) {
    const nowMs = performance.now();
    for (const account of this.#accounts) {
      const refused = account.refusesRequest(bytes, nowMs);
      if (refused !== undefined) return refused;
    }
    this.#count(messages, nowMs);
    this.#hold(bytes);
    let isHeld = true;
    return () => {
      if (isHeld && !this.#isOver) this.#hold(-bytes);
      isHeld = false;
    };
  }

  leave(): void {
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
