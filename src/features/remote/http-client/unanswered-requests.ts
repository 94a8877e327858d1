import type { RequestIds } from '../../../core/backend/backend.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { openRequest } from '../../../core/protocol/ids/answer-ids.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { Milestone } from '../../../core/util/timing/milestone.ts';
import { mayMeanForgotten } from './session-probe.ts';

/** The requests of one message that was posted, and which of them the server has not answered. */
export class UnansweredRequests {
  readonly ids: RequestIds;
  readonly open: Set<RequestId>;
  /** Errors that may mean that the server has forgotten the session. They wait until it is asked. */
  readonly doubtful: Message[] = [];
  /** All requests are answered, or nobody waits any more. */
  readonly settled = new Milestone();
  readonly #mayDoubt: boolean;

  /** @param mayDoubt true if the server keeps a session that it can have forgotten */
  constructor(ids: RequestIds, mayDoubt: boolean) {
    this.ids = ids;
    this.open = new Set(ids);
    this.#mayDoubt = mayDoubt;
  }

  /** True if there were requests, and all of them are answered. */
  get areAnswered(): boolean {
    return this.ids.length > 0 && this.open.size === 0;
  }

  /**
   * Notes which requests these messages answer. Returns false if they answer none.
   * @param mayLackId true if an answer without an id counts. The response to a POST is about its request, so it can
   *   answer no other one
   */
  note(messages: readonly Message[], mayLackId: boolean): boolean {
    const before = this.open.size;
    if (before === 0) return false;
    for (const { kind, id } of messages) {
      const answered = kind === 'response' && id != null ? openRequest(id, this.open) : undefined;
      if (answered !== undefined) this.open.delete(answered);
    }
    if (mayLackId && this.open.size === 1 && messages.some(hasNoId)) this.open.clear();
    if (this.open.size === 0) this.settled.pass();
    return this.open.size < before;
  }

  /** Takes the messages of an accepted response. Returns those that are certain. */
  take(received: readonly Message[]): readonly Message[] {
    // An answer without an id to a message that is no request says nothing.
    const messages = this.ids.length > 0 ? received : received.filter((message) => !hasNoId(message));
    const hasDoubt = this.#mayDoubt && messages.some((message) => this.#isDoubtful(message));
    const doubtful = hasDoubt ? messages.filter((message) => this.#isDoubtful(message)) : [];
    if (hasDoubt) this.doubtful.push(...doubtful);
    this.note(messages, true);
    return hasDoubt ? messages.filter((message) => !doubtful.includes(message)) : messages;
  }

  #isDoubtful(message: Message): boolean {
    const { id, isError, standIn } = message;
    return isError && (id == null || this.open.has(id)) && (mayMeanForgotten(message) || standIn !== undefined);
  }
}

/** True for an answer that names no request. */
const hasNoId = ({ kind, id, isError, standIn }: Message): boolean =>
  kind === 'response' && (id === null || (id === undefined && isError && standIn === undefined));
