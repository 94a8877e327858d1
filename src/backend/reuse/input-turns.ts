import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { WaitingList } from '../waiting-budget.ts';
import type { MemberCall, ProcessMember } from './process-member.ts';

/** How many requests of all sessions wait for their turn (P8). Their bytes have a limit, too. */
const maxWaiting = 256;

interface WaitingRequest {
  readonly member: ProcessMember;
  readonly request: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/**
 * Lets sessions take turns with calls during which the server may ask the client. A request from the server then belongs
 * to one session and no other (P2, P11), because it does not name the call. Calls of one session run at the same time.
 */
export class InputTurns {
  readonly #calls: ReadonlyMap<RequestId, MemberCall>;
  readonly #waiting = new WaitingList<WaitingRequest>(({ request }) => request.text.length);

  constructor(calls: ReadonlyMap<RequestId, MemberCall>) {
    this.#calls = calls;
  }

  /** The number of requests that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Whether a request may be sent now. A request that waits is returned by `next` later. */
  admit(member: ProcessMember, request: Message, headers: ForwardedHeaders | undefined): 'now' | 'later' | 'never' {
    if (!methodOf(request.method).mayAsk || !this.#isOthersTurn(member)) return 'now';
    if (this.#waiting.length >= maxWaiting || !this.#waiting.hasRoomFor(request.text.length)) return 'never';
    this.#waiting.push({ member, request, headers });
    return 'later';
  }

  /** Takes the first request that waits, if its session has the turn. */
  next(): WaitingRequest | undefined {
    const { first } = this.#waiting;
    return first === undefined || this.#isOthersTurn(first.member) ? undefined : this.#waiting.shift();
  }

  /** Removes a request that waits. Returns false if there is none. */
  remove(member: ProcessMember, id: RequestId): boolean {
    const found = this.#waiting.find((waiting) => waiting.member === member && waiting.request.id === id);
    return found !== undefined && this.#waiting.remove((waiting) => waiting === found);
  }

  /** Removes all requests of a session. */
  removeAll(member: ProcessMember): void {
    this.#waiting.remove((waiting) => waiting.member === member);
  }

  #isOthersTurn(member: ProcessMember): boolean {
    for (const call of this.#calls.values()) if (call.member !== member && methodOf(call.method).mayAsk) return true;
    return false;
  }
}
