import { randomInt } from 'node:crypto';
import type { RequestId } from '../faults.ts';

/**
 * The ids of the gateway's own requests, and of requests that it renumbers (docs/decisions/0156). All are numbers, since
 * some servers turn any other id into 0. Some servers read ids as 32-bit integers, so the numbers end below 2^31. They
 * begin where clients hardly count to.
 */
const first = 2 ** 30;
/** The numbers from here on are those of processes that several sessions use. Each process counts by itself. */
const firstOfProcess = first + 2 ** 29;
const end = 2 ** 31;

/** The largest number that can be none of the gateway's own; see `mayBeOwnId`. */
export const maxForeignId = first - 1;

const digits = String(first).length;

/** Random, so that the instances that use a server's session one after another count in different places. */
let last = randomInt(first, firstOfProcess);

/** A number that no other request of this instance has. */
export function nextOwnId(): number {
  last = last + 1 < firstOfProcess ? last + 1 : first;
  return last;
}

/**
 * True if a server may take an id, or a progress token, for one of these numbers. A client must not use such an id at the
 * server. Some servers take "1073741824" for 1073741824.
 */
export const mayBeOwnId = (id: RequestId | undefined): boolean => isWithin(id, first);

/** The numbers of the requests to one process. */
export class RequestNumbers {
  #last = firstOfProcess - 1;

  next(): number {
    this.#last = this.#last + 1 < end ? this.#last + 1 : firstOfProcess;
    return this.#last;
  }

  /** The newest number. */
  get last(): number {
    return this.#last;
  }

  /** As `mayBeOwnId`, for the numbers of processes. */
  static mayBe(id: RequestId | undefined): boolean {
    return isWithin(id, firstOfProcess);
  }
}

function isWithin(id: RequestId | undefined, from: number): boolean {
  if (typeof id === 'number') return id >= from && id < end;
  return id !== undefined && id.length >= digits && Number(id) >= from && Number(id) < end;
}
