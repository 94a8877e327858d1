import type { RequestIds } from '../../core/backend/backend.ts';
import { AskGate, type AskingCall, isAskedBeside } from '../../core/multiplex/ask-gate.ts';
import { CallBook } from '../../core/multiplex/call-book.ts';
import { Route } from '../../core/multiplex/route.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';

/** The outcome of the view's own request: the response, or undefined if there will be none. */
export type OnOutcome = (response: Message | undefined) => void;

/** A request for one server. Its client is not known, so each call has an owner of its own. */
export interface MemberCall extends AskingCall<RequestId> {
  readonly method: string | undefined;
  /** True if the answer may create a task. */
  readonly asksForTask: boolean;
  readonly headers: ForwardedHeaders | undefined;
  /** Set for a request of the view itself. */
  readonly onOutcome: OnOutcome | undefined;
  /** True if it does not run again: it has, or its text is not kept. */
  isRerun: boolean;
}

/** Whose the calls of a view are. */
export interface CallsOfView {
  /** True if the calls belong to several clients (P11). */
  readonly isGroup: boolean;
  /** True if the servers may ask the clients. */
  readonly asksClients: boolean;
}

/**
 * The requests that are kept for a rerun have this limit together (P8). The text of one beyond it is not kept, so it does
 * not run again after a loss.
 */
const maxKeptBytes = 4 * 1024 * 1024;

/**
 * The requests at one server of a view. A view knows which server a message comes from, so only that server's calls count
 * (P2). In a group, a server runs one call at a time that may ask its client, so that its question has one recipient.
 */
export class MemberCalls extends CallBook<MemberCall> {
  readonly gate: AskGate<MemberCall>;
  readonly #route = new Route<MemberCall>(this, ({ id }) => id);
  readonly #isGroup: boolean;

  constructor({ isGroup, asksClients }: CallsOfView) {
    super();
    this.#isGroup = isGroup;
    this.gate = new AskGate(({ owner }) => isGroup && asksClients && isAskedBeside(this, owner));
  }

  override add(call: MemberCall): void {
    const bytes = call.request?.text.length ?? 0;
    if (this.heldBytes + bytes > maxKeptBytes) {
      call.request = undefined;
      call.isRerun = true;
    }
    super.add(call);
  }

  /** The requests of clients that a message relates to; undefined if the session decides. */
  relatedRequests({ kind }: Message): RequestIds | undefined {
    const found = this.#route.only(
      ({ onOutcome, mayAsk }) => onOutcome === undefined && (kind !== 'request' || mayAsk),
    );
    if (found !== 'several') return found === undefined ? [] : [found.id];
    return this.#isGroup ? [] : undefined;
  }
}

/** A request of a client, or of the view itself. */
export const memberCallOf = (
  request: Message,
  headers: ForwardedHeaders | undefined,
  onOutcome: OnOutcome | undefined,
): MemberCall => {
  const { id, progressToken, method, asksForTask } = request;
  return {
    id: id as RequestId,
    owner: id as RequestId,
    progressToken,
    request,
    method,
    mayAsk: onOutcome === undefined && methodOf(method).mayAsk,
    asksForTask,
    headers,
    onOutcome,
    isRerun: false,
  };
};
