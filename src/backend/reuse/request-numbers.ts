import type { RequestId } from '../../protocol/faults.ts';

/**
 * The gateway's own numbers for requests to a process. Some servers read ids as 32-bit integers, so the numbers begin
 * where clients hardly count to, and end below 2^31.
 */
const firstNumber = 2 ** 30;
const firstDigits = String(firstNumber).length;

/** Gives each request of a process a number that is never used twice. */
export class RequestNumbers {
  #last = firstNumber - 1;

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  /**
   * True if a server may take an id for one of these numbers. A session must not use such an id at the server. Some
   * servers take "1073741824" for 1073741824.
   */
  static mayBe(id: RequestId | undefined): boolean {
    if (typeof id === 'number') return id >= firstNumber;
    return id !== undefined && id.length >= firstDigits && Number(id) >= firstNumber;
  }
}
