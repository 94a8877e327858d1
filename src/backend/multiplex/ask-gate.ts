import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { WaitingList } from '../waiting-budget.ts';
import type { BookedCall, CallBook } from './call-book.ts';

/** How many requests of all clients wait at a gate (P8). Their bytes have a limit, too. */
const maxWaiting = 256;

/** A request that waits at the gate. */
export interface WaitingRequest<O> {
  readonly owner: O;
  readonly request: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/** A call as the gate sees it. */
export interface AskingCall<O> extends BookedCall {
  readonly owner: O;
  /** True if the server may ask the client during the call. */
  readonly mayAsk: boolean;
}

/**
 * Lets only one client at a time have calls during which the server may ask. A request of the server then belongs to this
 * client and no other (P2, P11), because it does not name the call. The calls of one client run at the same time.
 */
export class AskGate<O> {
  readonly #book: CallBook<AskingCall<O>>;
  readonly #waiting = new WaitingList<WaitingRequest<O>>(({ request }) => request.text.length);

  /** @param book the calls at the server */
  constructor(book: CallBook<AskingCall<O>>) {
    this.#book = book;
  }

  /** The number of requests that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Whether a request may be sent now. A request that waits is returned by `next` later. */
  admit(owner: O, request: Message, headers: ForwardedHeaders | undefined): 'now' | 'later' | 'full' {
    if (!methodOf(request.method).mayAsk || !this.#isClosedFor(owner)) return 'now';
    if (this.#waiting.length >= maxWaiting || !this.#waiting.hasRoomFor(request.text.length)) return 'full';
    this.#waiting.push({ owner, request, headers });
    return 'later';
  }

  /** Removes and returns the first request that waits, if it may be sent now. */
  next(): WaitingRequest<O> | undefined {
    const { first } = this.#waiting;
    return first === undefined || this.#isClosedFor(first.owner) ? undefined : this.#waiting.shift();
  }

  /** Removes a request that its client has cancelled. Returns false if it does not wait here. */
  remove(owner: O, id: RequestId): boolean {
    const found = this.#waiting.find((waiting) => waiting.owner === owner && waiting.request.id === id);
    return found !== undefined && this.#waiting.remove((waiting) => waiting === found);
  }

  /** Removes all requests of a client. */
  removeAll(owner: O): void {
    this.#waiting.remove((waiting) => waiting.owner === owner);
  }

  /** Removes and returns all requests. */
  takeAll(): readonly WaitingRequest<O>[] {
    return this.#waiting.takeAll();
  }

  #isClosedFor(owner: O): boolean {
    for (const call of this.#book.speakable()) if (call.mayAsk && call.owner !== owner) return true;
    return false;
  }
}
