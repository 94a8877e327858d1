import type { Answer, AnswerOptions } from '../../call/answer.ts';
import type { OpeningAnswer } from '../../call/call-answer.ts';
import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import type { Message } from '../../protocol/message/message.ts';
import { modernNotServedData } from '../../protocol/modern/modern-not-served.ts';
import { accepted, faultAnswer, type Reply, type RequestAttempt } from '../../reply/reply.ts';
import type { PendingCall } from '../../store/event-log.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { SessionContext } from '../session-context.ts';
import { getStream } from './cursor.ts';
import type { EventDelivery } from './delivery.ts';
import { answerOnStream, eventText } from './logged-target.ts';

/** How many accepted requests are remembered for retries of ingresses: many more than wait for an owner at once. */
const maxRemembered = 512;

/** The id of an `initialize` that the gateway sends for a client that sends none. Its answer is not for the client. */
export const ownInitializeId = nextOwnId();

const nothing = Buffer.alloc(0);

/**
 * The answers to a client that gets everything on one stream (docs/decisions/0018). They go to that stream of the log,
 * and a POST is only told that it was accepted. It is told so once its requests are pending in the log, so that the
 * next owner answers them (P3).
 */
export class OneStream {
  readonly #context: SessionContext;
  readonly #delivery: EventDelivery;
  /** The newest accepted attempts, oldest first. A retry of one needs no second answer. */
  readonly #accepted = new BoundedMap<string, true>(maxRemembered);
  /** The requests that earlier owners have accepted, whose attempts are not known. */
  readonly #adopted = new BoundedMap<RequestId, true>(maxRemembered);
  /** POSTs that wait for the store. */
  #unconfirmed: { readonly since: number; answer(isStored: boolean): void }[] = [];

  constructor(context: SessionContext, delivery: EventDelivery) {
    this.#context = context;
    this.#delivery = delivery;
  }

  /** The answer to the requests of one POST. */
  answer({ ids, renumbered }: Pick<AnswerOptions, 'ids' | 'renumbered'>): Answer {
    return answerOnStream(this.#context, this.#delivery, getStream, { ids, renumbered });
  }

  /**
   * Answers a POST when its requests are in the log.
   * @param pending those of them that are in flight
   */
  accept(ids: readonly RequestId[], pending: readonly PendingCall[], reply: Reply): void {
    if (reply.attempt !== undefined) this.#accepted.set(reply.attempt.id, true);
    // An event without data only marks a position in the log. Clients never see it.
    if (pending.length > 0) this.#delivery.add(getStream, nothing, false, { opens: pending });
    this.#delivery.flush();
    this.confirm(ids, reply);
  }

  /** Refuses a message of the modern era: on the stream, since clients give up after a POST with an error. */
  refuseModern(message: Message, reply: Reply): void {
    const { id, kind } = message;
    if (kind !== 'request' || id === undefined || id === null) return reply.answer(accepted);
    const fault = faultMessage('modern_not_served', id, { ...modernNotServedData(message) });
    this.#delivery.add(getStream, Buffer.from(fault), false);
    this.#delivery.flush();
    this.confirm([id], reply);
  }

  /** Answers a POST when its events are in the log, or after the time limit of a request. */
  confirm(ids: readonly RequestId[], reply: Reply): void {
    const answer = once((isStored: boolean) => {
      limit.clear();
      if (isStored) reply.answer(accepted);
      else reply.answer(faultAnswer('outcome_unknown', ids[0] ?? null));
    });
    const limit = new TimeLimit(() => answer(false), this.#context.limits.requestIdleMs).unref();
    this.#unconfirmed.push({ since: performance.now(), answer });
    this.#delivery.whenStored((isStored) => {
      this.#unconfirmed = this.#unconfirmed.filter((post) => post.answer !== answer);
      answer(isStored);
    });
  }

  /** Ends the POSTs that have waited this long for the store. Whether they were accepted is unknown. */
  failUnanswered(afterMs: number): void {
    const latest = performance.now() - afterMs;
    for (const { since, answer } of this.#unconfirmed) if (since <= latest) answer(false);
  }

  /** Remembers requests that an earlier owner has accepted. */
  rememberAccepted(ids: readonly RequestId[]): void {
    for (const id of ids) this.#adopted.set(id, true);
  }

  /** True if an earlier attempt of a POST was accepted: the answers are on the stream, or will be. */
  hasAccepted(ids: readonly RequestId[], attempt: RequestAttempt | undefined): boolean {
    if (attempt?.previousIds.some((id) => this.#accepted.has(id)) === true) return true;
    return ids.length > 0 && ids.every((id) => this.#adopted.has(id));
  }

  /** The answer to `initialize`. It goes to the stream too, and the POST is told whether the session exists. */
  opening(id: RequestId, reply: Reply): OpeningAnswer {
    const answer = once((how: () => void) => how());
    return {
      stream: undefined,
      faultsInBand: false,
      hasStream: false, // earlier server messages are kept for the GET stream, within its limits
      message: ({ text }) => {
        this.#delivery.add(getStream, text, false);
        return true;
      },
      response: (response) =>
        answer(() => {
          const text = eventText(response, this.#context.limits.maxEventBytes);
          if (id !== ownInitializeId) this.#delivery.add(getStream, text, false);
          this.confirm([id], reply);
        }),
      refused: ({ text }) => answer(() => reply.answer({ kind: 'json', text })),
      fault: (reason) => answer(() => reply.answer(faultAnswer(reason, id))),
      abandon: () => answer(() => reply.answer(faultAnswer('outcome_unknown', id))),
    };
  }
}

/** A function that runs only at its first call. */
function once<T>(act: (value: T) => void): (value: T) => void {
  let isDone = false;
  return (value) => {
    if (isDone) return;
    isDone = true;
    act(value);
  };
}
