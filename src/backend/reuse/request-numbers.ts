import type { RequestId } from '../../protocol/faults.ts';

/**
 * The gateway's own numbers for requests to a process. Some servers read ids as 32-bit integers, so the numbers begin
 * where clients hardly count to, and end below 2^31.
 */
const firstNumber = 2 ** 30;

/** Gives each request of a process a number that is never used twice. */
export class RequestNumbers {
  #last = firstNumber - 1;

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  /** True if an id may be one of these numbers. A session must not use such an id at the server. */
  static mayBe(id: RequestId | undefined): boolean {
    return typeof id === 'number' && id >= firstNumber;
  }
}
