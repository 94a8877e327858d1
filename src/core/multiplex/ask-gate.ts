import { WaitingList } from '../backend/waiting-budget.ts';
import type { RequestId } from '../protocol/faults.ts';
import type { BookedCall, CallBook } from './call-book.ts';

/** How many calls of all clients wait at a gate (P8). Their bytes have a limit, too. */
const maxWaiting = 256;

/** A call as the gate sees it. */
export interface AskingCall<O = unknown> extends BookedCall {
  readonly owner: O;
  /** True if the server may ask the client during the call. */
  readonly mayAsk: boolean;
}

/** A call that is not sent yet. */
type WaitingCall<O> = Pick<AskingCall<O>, 'owner' | 'mayAsk' | 'request'>;

/**
 * Lets only one client at a time have calls during which the server may ask. A request of the server then belongs to this
 * client and no other (P2, P11), because it does not name the call. The calls of one client run at the same time.
 */
export class AskGate<W extends WaitingCall<unknown>> {
  readonly #isClosedFor: (call: W) => boolean;
  readonly #waiting = new WaitingList<W>(bytesOf);

  /** @param isClosedFor true while another client has a call during which the server may ask; see `isAskedBeside` */
  constructor(isClosedFor: (call: W) => boolean) {
    this.#isClosedFor = isClosedFor;
  }

  /** The number of calls that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Whether a call may be sent now. A call that waits is returned by `next` later. */
  admit(call: W): 'now' | 'later' | 'full' {
    if (!call.mayAsk || !this.#isClosedFor(call)) return 'now';
    if (this.#waiting.length >= maxWaiting || !this.#waiting.hasRoomFor(bytesOf(call))) return 'full';
    this.#waiting.push(call);
    return 'later';
  }

  /** Removes and returns the first call that waits, if it may be sent now. */
  next(): W | undefined {
    const { first } = this.#waiting;
    return first === undefined || this.#isClosedFor(first) ? undefined : this.#waiting.shift();
  }

  /** Removes a call that its client has cancelled. Returns false if it does not wait here. */
  remove(owner: W['owner'], id: RequestId): boolean {
    return this.#waiting.remove((waiting) => waiting.owner === owner && waiting.request?.id === id);
  }

  /** Removes all calls of a client. */
  removeAll(owner: W['owner']): void {
    this.#waiting.remove((waiting) => waiting.owner === owner);
  }

  /** Removes and returns all calls. */
  takeAll(): readonly W[] {
    return this.#waiting.takeAll();
  }
}

/** True if the server may ask another client than the owner of a call now. */
export function isAskedBeside(book: CallBook<AskingCall>, owner: unknown): boolean {
  for (const call of book.speakable()) if (call.mayAsk && call.owner !== owner) return true;
  return false;
}

const bytesOf = ({ request }: WaitingCall<unknown>): number => request?.text.length ?? 0;
