import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { valueAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { readClientFeatures } from '../../protocol/translate/modern-on-legacy/askable.ts';
import type { RequestIds } from '../backend.ts';
import { WaitingRequests } from '../waiting-budget.ts';
import type { Member } from './member.ts';

/** How many calls of all clients wait for their turn (P8). Their bytes have a limit, too. */
const maxHeld = 1_024;

/** A call that waits for another call of the same server. */
export interface HeldCall {
  readonly member: Member;
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/**
 * Relates the messages of a server to its calls. A view knows which server a message comes from, so only that server's
 * calls count (P2). In a group, the calls belong to several clients (P11): a server then runs one call at a time that may
 * ask its client, so that its question has one recipient. If the clients can be asked nothing, all calls run at once.
 */
export class MemberGates {
  readonly #isGroup: boolean;
  /** True if the clients of the group can be asked. */
  #canAsk = true;
  readonly #held = new WaitingRequests<HeldCall>(maxHeld);

  /** @param isGroup true if the calls belong to several clients */
  constructor(isGroup: boolean) {
    this.#isGroup = isGroup;
  }

  /** The client's `initialize` shows whether it can be asked. */
  noteInitialize({ text }: Message): void {
    this.#canAsk = readClientFeatures(valueAt(text, ['params', 'capabilities']) ?? Buffer.from('{}')).size > 0;
  }

  /** The requests that a server's message relates to, by the calls of this server that are in flight. */
  relatedRequests({ calls }: Member, message: Message): RequestIds | undefined {
    const own = [...calls].filter(([, { onOutcome }]) => onOutcome === undefined);
    const candidates = message.kind === 'request' ? own.filter(([, call]) => mayAsk(call.message)) : own;
    if (candidates.length < 2) return candidates.map(([id]) => id);
    return this.#isGroup ? [] : undefined;
  }

  /** Whether a call may be sent now. One that waits is sent when the call before it is answered. */
  admit(member: Member, message: Message, headers: ForwardedHeaders | undefined): 'now' | 'later' | 'full' {
    if (!this.#isGroup || !this.#canAsk || !mayAsk(message) || !isAsking(member)) return 'now';
    const id = message.id as RequestId;
    const held = { member, message, headers };
    if (!this.#held.hasRoomFor(id, held)) return 'full';
    this.#held.set(id, held);
    return 'later';
  }

  /** Removes and returns the call that may run next at a server; undefined if there is none, or if one runs. */
  release(member: Member): HeldCall | undefined {
    if (isAsking(member)) return undefined;
    for (const [id, held] of this.#held) {
      if (held.member !== member) continue;
      this.#held.delete(id);
      return held;
    }
    return undefined;
  }

  /** Removes a call that its client has cancelled. */
  cancel(id: RequestId): void {
    this.#held.delete(id);
  }

  /** Removes and returns the calls that wait for a server. */
  clear(index: number): readonly Message[] {
    const lost = [...this.#held].filter(([, { member }]) => member.index === index);
    for (const [id] of lost) this.#held.delete(id);
    return lost.map(([, { message }]) => message);
  }
}

const mayAsk = ({ method }: Message): boolean => methodOf(method).mayAsk;

const isAsking = ({ calls }: Member): boolean =>
  [...calls.values()].some(({ message, onOutcome }) => onOutcome === undefined && mayAsk(message));
