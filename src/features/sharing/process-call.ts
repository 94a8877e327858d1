import type { AskingCall } from '../../core/multiplex/ask-gate.ts';
import type { CallBook } from '../../core/multiplex/call-book.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { RequestNumbers } from '../../core/protocol/ids/own-ids.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { idsOf, type RenumberedIds, renumber } from '../../core/protocol/modern/renumber.ts';
import type { Seat } from './seat.ts';
import { readSubscription, type SubscriptionRequest } from './wishes.ts';

/** A request of a session at its process. */
export interface ProcessCall extends AskingCall<Seat> {
  /** The session's id and progress token as JSON texts; undefined if the server got them unchanged. */
  readonly renumbered: RenumberedIds | undefined;
  /** The resource that the request subscribes to, or unsubscribes from. */
  readonly subscription: SubscriptionRequest | undefined;
}

/** A request that waits at the gate of its process. */
export interface WaitingRequest {
  readonly owner: Seat;
  readonly mayAsk: boolean;
  readonly request: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/** Gives the requests to a process their ids there. Only its first session keeps its own ids. */
export class ProcessIds {
  readonly #book: CallBook<ProcessCall>;
  readonly #numbers = new RequestNumbers();
  /** True once a request has had a number. The server can name it at any time, even long after the request. */
  hasRenumbered = false;

  constructor(book: CallBook<ProcessCall>) {
    this.#book = book;
  }

  /** A number for a request of the gateway itself. */
  next(): number {
    return this.#numbers.next();
  }

  /** Returns the call, and the request as the server gets it. A request gets a number if its id could be mistaken. */
  number(owner: Seat, request: Message): { readonly call: ProcessCall; readonly sent: Message } {
    const { id, progressToken, method } = request;
    const clientId = id as RequestId;
    const isTaken = RequestNumbers.mayBe(clientId) || RequestNumbers.mayBe(progressToken);
    const isUnchanged = owner.keepsIds && !isTaken && this.#book.find(clientId) === undefined;
    const renumbered = isUnchanged ? undefined : renumber(request, this.next());
    this.hasRenumbered ||= !isUnchanged;
    const sent = renumbered?.request ?? request;
    const call: ProcessCall = {
      id: sent.id as RequestId,
      progressToken: sent.progressToken,
      owner,
      mayAsk: methodOf(method).mayAsk,
      renumbered: renumbered && idsOf(renumbered),
      subscription: readSubscription(request),
    };
    return { call, sent };
  }
}
