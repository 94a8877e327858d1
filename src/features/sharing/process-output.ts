import type { CallBook } from '../../core/multiplex/call-book.ts';
import { type Route, routed } from '../../core/multiplex/route.ts';
import { elicitationComplete, UrlElicitations } from '../../core/multiplex/url-elicitations.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import { RequestNumbers } from '../../core/protocol/ids/own-ids.ts';
import { scalarAt } from '../../core/protocol/json.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { restoreId, restoreToken } from '../../core/protocol/modern/renumber.ts';
import type { ProcessCall } from './process-call.ts';
import type { Seat } from './seat.ts';
import { ServerQuestions } from './server-questions.ts';
import { type Wishes, wantsLog } from './wishes.ts';

/** The sessions that get a message, each with the message under its ids. */
export type Deliveries = readonly (readonly [Seat, Message])[];

/** What decides who gets a message of a process. */
export interface ProcessOutputParts {
  readonly seats: ReadonlySet<Seat>;
  readonly book: CallBook<ProcessCall>;
  readonly route: Route<ProcessCall>;
  readonly wishes: Wishes;
  /** The server has answered a request of a session. */
  onAnswered(call: ProcessCall, response: Message): void;
  /** Takes the response to a request of the gateway itself. Returns false for any other one. */
  takeOwn(response: Message): boolean;
  /** Answers a request of the server in place of the clients: with a result, or with an error. */
  answer(id: RequestId, isKnown: boolean): void;
  onDropped(): void;
}

const noDelivery: Deliveries = [];

/**
 * Finds the sessions that a message of their process belongs to (P2, P11). A response, progress and a report name their
 * session. Changes of lists are for all. The other messages belong to the only session with a call in flight. If there are
 * several, they go to nobody. `only` is the only session that a message can be for, if there is one.
 */
export class ProcessOutput {
  readonly #parts: ProcessOutputParts;
  /** The requests of the server that its sessions have not answered. */
  readonly questions = new ServerQuestions();
  /** The URL elicitations that sessions got. */
  readonly elicitations = new UrlElicitations<Seat>();

  constructor(parts: ProcessOutputParts) {
    this.#parts = parts;
  }

  deliveriesOf(message: Message, only: Seat | undefined): Deliveries {
    if (message.kind === 'response') return this.#response(message, only);
    if (message.kind === 'request') return this.#request(message, only);
    const { progressToken, cancels } = message;
    if (cancels !== undefined) return this.#cancellation(message, cancels, only);
    if (progressToken !== undefined) return this.#progress(message, progressToken, only);
    if (only !== undefined) return [[only, message]];
    const seats = this.#seatsFor(message);
    return seats.length === 0 ? this.#drop() : seats.map((seat) => [seat, message] as const);
  }

  #response(response: Message, only: Seat | undefined): Deliveries {
    const { id, isError } = response;
    if (id === undefined || id === null) return only === undefined ? this.#drop() : [[only, response]];
    if (this.#parts.takeOwn(response)) return noDelivery;
    const call = this.#parts.book.settle(id);
    if (call === undefined) return this.#unknown(response, id, only);
    this.#parts.onAnswered(call, response);
    const { owner, renumbered } = call;
    if (owner.hasLeft) return noDelivery;
    if (isError) this.elicitations.note(owner, response);
    return [[owner, renumbered === undefined ? response : restoreId(response, renumbered)]];
  }

  #progress(notification: Message, token: RequestId, only: Seat | undefined): Deliveries {
    const call = this.#parts.book.byToken(token);
    if (call === undefined) return this.#unknown(notification, token, only);
    const { owner, renumbered } = call;
    if (owner.hasLeft) return this.#drop();
    if (renumbered?.tokenText === undefined) return [[owner, notification]];
    return [[owner, restoreToken(notification, renumbered.clientToken, renumbered.tokenText)]];
  }

  /** A message about a request that is over: the session reports it. Numbers are of other sessions. */
  #unknown(message: Message, named: RequestId, only: Seat | undefined): Deliveries {
    return only?.keepsIds === true && !RequestNumbers.mayBe(named) ? [[only, message]] : this.#drop();
  }

  /** The server does not need the answer to one of its requests. */
  #cancellation(notification: Message, cancels: RequestId, only: Seat | undefined): Deliveries {
    const asked = this.questions.askedBy(cancels) ?? only;
    if (asked !== undefined) this.questions.settle(asked, cancels);
    return asked === undefined || asked.hasLeft ? this.#drop() : [[asked, notification]];
  }

  /** Only one session can get a request of the server. If there is none, the gateway answers: no server must wait. */
  #request(request: Message, only: Seat | undefined): Deliveries {
    const { route, answer } = this.#parts;
    const { id, method } = request;
    if (id === undefined || id === null) return noDelivery;
    if (only === undefined && method === 'ping') {
      answer(id, true);
      return noDelivery;
    }
    const asking = route.only(({ mayAsk }) => mayAsk) ?? route.only();
    const seat = only ?? routed(asking)?.owner;
    if (seat === undefined || seat.hasLeft || (only === undefined && this.questions.isFull)) {
      // Another session may still answer a request with this id. A refusal would answer that one.
      if (this.questions.askedBy(id) === undefined) answer(id, false);
      return noDelivery;
    }
    if (!this.questions.add(seat, request)) return this.#drop();
    this.elicitations.note(seat, request);
    return [[seat, request]];
  }

  /** The sessions that get a notification which names no request. */
  #seatsFor(notification: Message): readonly Seat[] {
    const { seats, route, wishes } = this.#parts;
    const { method, text } = notification;
    if (methodOf(method).changedLists !== undefined) return [...seats];
    if (method === 'notifications/resources/updated') return wishes.subscribers(scalarAt(text, ['params', 'uri']));
    const seat =
      method === elicitationComplete ? this.elicitations.ownerOf(notification) : routed(route.notified())?.owner;
    if (seat === undefined || !seats.has(seat)) return [];
    return method !== 'notifications/message' || wantsLog(seat, notification) ? [seat] : [];
  }

  #drop(): Deliveries {
    this.#parts.onDropped();
    return noDelivery;
  }
}
