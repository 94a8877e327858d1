import { eventText, type OpeningAnswer } from '../../call/legacy-answer.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Reply } from '../../reply/reply.ts';
import type { PendingCall } from '../../store/event-log.ts';
import type { SessionOptions } from '../session-options.ts';
import type { EventDelivery } from './delivery.ts';
import { LoggedAnswer } from './logged-answer.ts';
import { getStream } from './streams.ts';

/** So many accepted requests are remembered, for ingresses that ask again: many more than wait for an owner's word at once. */
const maxRemembered = 512;

const nothing = Buffer.alloc(0);

/**
 * The answers of a client that hears everything on one stream (docs/decisions/0018): they go to that stream of the log, and
 * a POST is only told that it was accepted. That is said when its requests stand in the log as pending, so that whoever
 * takes the session over answers them (P3).
 */
export class OneStream {
  readonly #outbound: EventDelivery;
  readonly #limits: Pick<SessionOptions, 'maxEventBytes' | 'requestIdleMs'>;
  /** The newest requests that were accepted, oldest first: asked again, they need no second answer. */
  readonly #accepted = new Set<RequestId>();
  /** POSTs that wait for the store. */
  #unconfirmed: { readonly since: number; answer(isStored: boolean): void }[] = [];

  constructor(outbound: EventDelivery, limits: Pick<SessionOptions, 'maxEventBytes' | 'requestIdleMs'>) {
    this.#outbound = outbound;
    this.#limits = limits;
  }

  /** The answer of so many requests of one POST. */
  answer(count: number): LoggedAnswer {
    const emit = (stream: number, text: Buffer, last: boolean, settles?: RequestId): void =>
      this.#outbound.add(stream, text, last, { settles });
    return new LoggedAnswer({ emit }, getStream, count, this.#limits.maxEventBytes);
  }

  /** Answers a POST when its requests, of which these are in flight, are in the log. */
  accept(ids: readonly RequestId[], pending: readonly PendingCall[], reply: Reply): void {
    this.note(ids);
    // Without data: a place in the log, which no client is shown.
    if (pending.length > 0) this.#outbound.add(getStream, nothing, false, { opens: pending });
    this.#outbound.flush();
    this.confirm(ids, reply);
  }

  /** Answers a POST when what was added for it is in the log; at the limit of a request, if the store is away for so long. */
  confirm(ids: readonly RequestId[], reply: Reply): void {
    const answer = once((isStored: boolean) => {
      clearTimeout(timer);
      if (isStored) reply.accepted();
      else reply.fault('outcome_unknown', ids[0] ?? null);
    });
    const timer = setTimeout(() => answer(false), this.#limits.requestIdleMs).unref();
    this.#unconfirmed.push({ since: performance.now(), answer });
    this.#outbound.whenStored((isStored) => {
      this.#unconfirmed = this.#unconfirmed.filter((one) => one.answer !== answer);
      answer(isStored);
    });
  }

  /** Ends the POSTs that have waited for the store for so long: whether they were accepted is not known. */
  failUnanswered(afterMs: number): void {
    const until = performance.now() - afterMs;
    for (const { since, answer } of this.#unconfirmed) if (since <= until) answer(false);
  }

  /** Requests that were accepted, here or by an earlier owner. */
  note(ids: readonly RequestId[]): void {
    for (const id of ids) this.#accepted.add(id);
    for (const oldest of this.#accepted) {
      if (this.#accepted.size <= maxRemembered) break;
      this.#accepted.delete(oldest);
    }
  }

  /** True if these requests were accepted: their answers are on the stream, or will be. */
  knows(ids: readonly RequestId[]): boolean {
    return ids.length > 0 && ids.every((id) => this.#accepted.has(id));
  }

  /** The answer to `initialize`: on the stream as well, while the POST is told whether there is a session. */
  opening(reply: Reply): OpeningAnswer {
    const answer = once((how: () => void) => how());
    return {
      stream: undefined,
      hasStream: false, // what the server says before is kept for the stream, within the bounds of that
      message: (text) => this.#outbound.add(getStream, text, false),
      response: (id, text) =>
        answer(() => {
          this.#outbound.add(getStream, eventText(id, text, this.#limits.maxEventBytes), false);
          this.confirm([id], reply);
        }),
      refused: (_id, text) => answer(() => reply.json(text)),
      fail: (id, reason) => {
        answer(() => reply.fault(reason, id));
        return true;
      },
      abandon: (id) => answer(() => reply.fault('outcome_unknown', id)),
    };
  }
}

/** The first call counts. */
function once<T>(act: (value: T) => void): (value: T) => void {
  let isDone = false;
  return (value) => {
    if (isDone) return;
    isDone = true;
    act(value);
  };
}
