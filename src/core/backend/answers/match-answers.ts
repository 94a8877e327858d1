import type { Reason, RequestId } from '../../protocol/faults.ts';
import { openRequest } from '../../protocol/ids/answer-ids.ts';
import { errorCodeIn } from '../../protocol/json.ts';
import { changedMessage, withId } from '../../protocol/message/changed-message.ts';
import { createBadResponse, type Message } from '../../protocol/message/message.ts';
import { methodNotFound } from '../../protocol/revisions.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { BackendEnd, OpenOptions, RequestIds, Sent } from '../backend.ts';
import { type CreateInterceptor, Interceptor } from '../link/link.ts';

/**
 * How long an answer that is no valid message, or whose id is null, waits for a better one, in milliseconds. Some servers
 * write what they send into stdout as a log line first, and some answer a notification with an error.
 */
const graceMs = 250;

/** Requests that are remembered (P8). The answer to an older one is only found by its exact id. */
const maxRequests = 8_192;

/** Notifications and answers that the server may still answer with an error (P8). */
const maxNotices = 100;

/** An answer that waits for a better one. */
interface HeldAnswer {
  readonly response: Message;
  readonly related: RequestIds | undefined;
  readonly limit: TimeLimit;
}

/**
 * Finds the request that each answer of a server belongs to (docs/decisions/0156), whatever the transport:
 * - An id that came back as the other JSON type ("7" for 7) belongs to the only open request with that value.
 * - An error with the id null ends the only open request.
 * - An answer that is no valid message ends the request that it names with an error.
 * - A request of the server that is no valid message is answered with an error.
 *
 * All users of a backend thus get each answer under the id that they sent. Each transport has this directly above it.
 */
export const matchAnswers: CreateInterceptor = (opening) => new MatchedAnswers(opening);

class MatchedAnswers extends Interceptor {
  /** The ids of the requests that are not answered; false for one that was cancelled. */
  readonly #open = new Map<RequestId, boolean>();
  /** Answers that wait for a better one, by the id of their request. */
  readonly #held = new SparseMap<RequestId, HeldAnswer>();
  /** How many notifications and answers the server has not answered with an error. */
  #notices = 0;

  constructor(opening: OpenOptions | undefined) {
    super();
    for (const id of opening?.resume?.pending ?? []) this.#open.set(id, true);
  }

  override onSent(message: Message, result: Sent): void {
    if (result === 'sent') this.#noteSent(message);
  }

  /** Returns the messages with the ids of their requests. Returns the same list if nothing is to be changed. */
  override onMessages(messages: readonly Message[], related: RequestIds | undefined): readonly Message[] {
    let matched: Message[] | undefined;
    for (let index = 0; index < messages.length; index += 1) {
      const message = messages[index] as Message;
      const found = this.#matchOne(message, related);
      if (found !== message) matched ??= messages.slice(0, index);
      if (found !== undefined) matched?.push(found);
    }
    return matched ?? messages;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    const others = ids.filter((id) => !this.#deliverHeld(id));
    for (const id of others) this.#open.delete(id);
    if (others.length > 0) this.passUnanswered(others, reason, isFinal);
  }

  override onEnd(end: BackendEnd): void {
    for (const id of [...this.#held.keys()]) this.#deliverHeld(id);
    this.#open.clear();
    this.passEnd(end);
  }

  #noteSent({ kind, id, cancels }: Message): void {
    if (kind === 'request') {
      this.#open.set(id as RequestId, true);
      if (this.#open.size > maxRequests) this.#open.delete(this.#open.keys().next().value as RequestId);
      return;
    }
    if (cancels !== undefined && this.#open.has(cancels)) this.#open.set(cancels, false);
    if (this.#notices < maxNotices) this.#notices += 1;
  }

  /** Returns the message as its receiver gets it now, if it does. */
  #matchOne(message: Message, related: RequestIds | undefined): Message | undefined {
    const { kind, id, standIn } = message;
    if (kind === 'response') {
      const isPlain = id != null && standIn === undefined;
      if (isPlain && this.#open.delete(id)) return this.#held.size === 0 ? message : this.#replaceHeld(id, message);
      return this.#matchOdd(message, related);
    }
    if (standIn?.reason !== 'not_json_rpc') return message;
    this.passNoise(standIn.written);
    this.passSend(changedMessage(createBadResponse(null, '', standIn.written), standIn.refusal, {}));
    return undefined;
  }

  #replaceHeld(id: RequestId, answer: Message): Message {
    this.#held.get(id)?.limit.clear();
    this.#held.delete(id);
    return answer;
  }

  #matchOdd(response: Message, related: RequestIds | undefined): Message | undefined {
    const { id, standIn } = response;
    const request = id == null ? this.#onlyRequest(response, related) : openRequest(id, this.#open);
    if (request === undefined) {
      if (standIn?.reason !== 'bad_response') return response; // its receiver counts it as unknown
      this.passNoise(standIn.written);
      return undefined;
    }
    const own = id === request ? response : withId(asError(response), request);
    if (id != null && standIn?.reason !== 'bad_response') {
      this.#open.delete(request);
      return this.#replaceHeld(request, own);
    }
    if (this.#held.has(request)) return undefined;
    const limit = new TimeLimit(() => this.#deliverHeld(request), graceMs);
    this.#held.set(request, { response: own, related, limit });
    return undefined;
  }

  /** Delivers the answer that waits for a better one. False if there is none. */
  #deliverHeld(id: RequestId): boolean {
    const held = this.#held.get(id);
    if (held === undefined) return false;
    held.limit.clear();
    this.#held.delete(id);
    if (!this.#open.delete(id)) return false;
    this.passMessages([held.response], held.related);
    return true;
  }

  /**
   * The request that an answer without an id can belong to, if there is only one. An error for an unknown method belongs
   * to a notification, if the server may still answer one.
   */
  #onlyRequest(response: Message, related: RequestIds | undefined): RequestId | undefined {
    const isForNotice = this.#notices > 0 && response.isError && errorCodeIn(response.text) === methodNotFound;
    if (isForNotice && related === undefined) {
      this.#notices -= 1;
      return undefined;
    }
    const open = related?.filter((id) => this.#open.has(id)) ?? this.#waiting();
    return open.length === 1 ? open[0] : undefined;
  }

  /** The open requests that nobody has cancelled: two of them at most. */
  #waiting(): RequestId[] {
    const waiting: RequestId[] = [];
    for (const [id, isWaiting] of this.#open) {
      if (isWaiting) waiting.push(id);
      if (waiting.length > 1) break;
    }
    return waiting;
  }
}

/** A result whose id is null says nothing that could be relied on. */
const asError = (response: Message): Message =>
  response.id !== null || response.isError
    ? response
    : createBadResponse(null, 'the id is null', Buffer.from(response.text.subarray(0, 200)));
