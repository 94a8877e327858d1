import { setTimeout as delay } from 'node:timers/promises';
import { OrderedDelivery } from '../../../core/backend/in-order.ts';
import type { FaultData } from '../../../core/call/call-answer.ts';
import { type Reason, reasonOfRunning } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { type Message, oneOf, readBodyWhenRoom } from '../../../core/protocol/message/message.ts';
import type { EventId } from '../../../core/protocol/wire/event-id.ts';
import type { CompleteAnswer, EventSink, EveryFact, Reply, RequestFacts } from '../../../core/reply/reply.ts';
import type { ClientPost, SessionHandle } from '../../../core/session/session-handle.ts';
import { detach } from '../../../core/util/boundary.ts';

/** How often in a row a stream without the response is resumed, and the pause before each attempt. */
const maxResumes = 5;
const resumePauseMs = 200;

/** The position of a message on its stream: `at` is its event, and resuming after `before` delivers it again. */
export interface EventPosition {
  readonly before: EventId | undefined;
  readonly at: EventId | undefined;
}

/** What the gateway hears of one request that it makes as the client of a session. */
interface AnswerListener {
  /** A message of the answer and its position; without `before` the message cannot be read again. */
  message(message: Message, position: EventPosition): void;
  /** The answer is an error of the catalogue, from the session or from the gateway. */
  fault(reason: Reason, data?: FaultData): void;
  /** The messages were accepted. They contain no request, or its answer has become a stream. */
  accepted(isStream: boolean): void;
  /** No more messages come: the answer is complete, or its stream was cut. */
  ended(): void;
}

/**
 * What a session sees of the gateway as its client. The messages of a session of this process arrive as they were read
 * from the server. Those of another instance, or of the log, are read here: a large one in turns of its own, and its
 * stream waits meanwhile (P8). Otherwise there is no back-pressure: the listener bounds what it keeps.
 */
class OwnReply implements Reply, EventSink {
  readonly request: RequestFacts;
  isGone = false;
  /** The newest event that was read, priming events included. */
  newest: EventId | undefined;
  readonly #listener: AnswerListener;
  readonly #gone: (() => void)[] = [];
  readonly #drained: (() => void)[] = [];
  readonly #inOrder = new OrderedDelivery('session', {
    hold: () => undefined,
    release: () => {
      for (const listener of this.#drained) listener();
    },
  });

  /** @param after the event after which the stream is resumed */
  constructor(listener: AnswerListener, forwarded?: ForwardedHeaders, after?: EventId) {
    this.#listener = listener;
    const accepts = { json: true, sse: true };
    this.request = { accepts, forwarded, requestId: undefined, receivedAt: undefined } satisfies EveryFact;
    this.newest = after;
  }

  onGone(listener: () => void): void {
    if (!this.isGone) this.#gone.push(listener);
  }

  /** Stops reading: the session sees a client that has disconnected. */
  leave(): void {
    if (this.isGone) return;
    this.isGone = true;
    for (const listener of this.#gone.splice(0)) listener();
  }

  answer(answer: CompleteAnswer): void {
    if (this.isGone) return;
    switch (answer.kind) {
      case 'accepted':
        return this.#listener.accepted(false);
      case 'fault':
        return this.#listener.fault(answer.reason, answer.data);
      case 'json':
        this.#take(answer.text, answer.message, undefined);
        return this.end();
      case 'removed':
      case 'nothing':
        return this.end();
      default:
        answer satisfies never;
    }
  }

  stream(): EventSink {
    if (!this.isGone) this.#listener.accepted(true);
    return this;
  }

  write({ events }: Parameters<EventSink['write']>[0]): boolean {
    for (const event of events) {
      if (event.kind === 'message') this.#take(event.data, event.message, event.id);
      if (event.kind === 'priming') this.#inOrder.after(() => this.#noteRead(event.id));
    }
    return !this.#inOrder.isBusy;
  }

  onDrain(listener: () => void): void {
    this.#drained.push(listener);
  }

  onClose(listener: () => void): void {
    this.onGone(listener);
  }

  end(): void {
    this.#inOrder.after(() => {
      if (!this.isGone) this.#listener.ended();
    });
  }

  cut(): void {
    this.end();
  }

  #take(text: Buffer, known: Message | undefined, at: EventId | undefined): void {
    const deliver = (message: Message | undefined): void => {
      if (message !== undefined && !this.isGone) this.#listener.message(message, { before: this.newest, at });
      this.#noteRead(at);
    };
    if (known !== undefined) return this.#inOrder.after(() => deliver(known));
    this.#inOrder.takeLater(
      () => readBodyWhenRoom(text, Number.POSITIVE_INFINITY),
      (body) => deliver(oneOf(body)),
    );
  }

  #noteRead(at: EventId | undefined): void {
    this.newest = at ?? this.newest;
  }
}

/**
 * Makes one request to a session, as its client. Resolves with the response, with the reason if there will be none, or
 * with nothing if the session has accepted messages that need no response.
 * @param send makes the request, which the reply answers
 * @param ifEnded the reason for an answer that ends without a response
 */
export function ask(
  send: (reply: Reply) => void,
  forwarded?: ForwardedHeaders,
  ifEnded: Reason = 'outcome_unknown',
): Promise<Message | Reason | undefined> {
  return new Promise((resolve) => {
    const listener: AnswerListener = {
      message: (message) => {
        if (message.kind === 'response') resolve(message);
      },
      fault: resolve,
      accepted: (isStream) => {
        if (!isStream) resolve(undefined);
      },
      ended: () => resolve(ifEnded),
    };
    send(new OwnReply(listener, forwarded));
  });
}

/** The listener of a call's stream, and the access to its session. */
export interface CallStreamOptions {
  readonly forwarded: ForwardedHeaders | undefined;
  /** Finds the current session, or the reason why there is none. */
  find(): Promise<SessionHandle | Reason>;
  message(message: Message, position: EventPosition): void;
  /** No more messages of the call can be read, for this reason. */
  failed(reason: Reason): void;
}

/**
 * Reads the messages of one call, across all connections and owners of its session. A stream that ends without the
 * response is resumed after its newest event.
 */
export class CallStream {
  readonly #options: CallStreamOptions;
  #reply: OwnReply | undefined;
  #resumes = 0;
  /** True if a session has resumed the stream since it last ended. */
  #isResumed = false;
  #isStopped = false;
  /** What the newest refusal of the request says beside its reason. */
  refusalData: FaultData | undefined;

  constructor(options: CallStreamOptions) {
    this.#options = options;
  }

  /** True once the gateway reads no more. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** True once the request was sent or the stream was resumed. */
  get hasBegun(): boolean {
    return this.#reply !== undefined;
  }

  /** The newest event that was read; undefined until there is one. */
  get newest(): EventId | undefined {
    return this.#reply?.newest;
  }

  /**
   * Sends the request to a session. Resolves with the reason if it was refused, or with nothing once it was accepted.
   */
  post(handle: SessionHandle, post: ClientPost): Promise<Reason | undefined> {
    return new Promise((resolve) => {
      const fault = (reason: Reason, data?: FaultData): void => {
        this.refusalData = data;
        resolve(reason);
      };
      handle.post(post, this.#connect({ fault, accepted: () => resolve(undefined) }));
    });
  }

  /** Resumes the call's stream after an event. */
  listen(handle: SessionHandle, after: EventId): void {
    const fault = (reason: Reason): void => this.#fail(reasonOfRunning(reason));
    const accepted = (): void => {
      this.#isResumed = true;
    };
    handle.listen(after, this.#connect({ fault, accepted }, after));
  }

  /** Stops reading. */
  stop(): void {
    this.#isStopped = true;
    this.#reply?.leave();
  }

  #connect({ fault, accepted }: Pick<AnswerListener, 'fault' | 'accepted'>, after?: EventId): OwnReply {
    const message = (read: Message, position: EventPosition): void => {
      accepted(true);
      if (this.#isStopped) return;
      this.#resumes = 0;
      this.#options.message(read, position);
    };
    const ended = (): void => {
      if (after === undefined) accepted(true);
      this.#handleEnd();
    };
    this.#reply = new OwnReply({ message, fault, accepted, ended }, this.#options.forwarded, after);
    return this.#reply;
  }

  /** Resumes a stream that ended without the response: its session moved, or the connection grew too old. */
  #handleEnd(): void {
    if (this.#isStopped) return;
    const after = this.newest;
    this.#resumes += 1;
    // A taken-up stream is not hopeless: clients that sent the same answers may be reading it in turn.
    const isHopeless = this.#resumes > maxResumes && !this.#isResumed;
    this.#isResumed = false;
    if (after === undefined || isHopeless) return this.#fail('outcome_unknown');
    detach(
      'session',
      delay(resumePauseMs * Math.min(this.#resumes, maxResumes)).then(async () => {
        if (this.#isStopped) return;
        const handle = await this.#options.find();
        if (this.#isStopped) return;
        if (typeof handle === 'string') this.#fail('outcome_unknown');
        else this.listen(handle, after);
      }),
    );
  }

  #fail(reason: Reason): void {
    if (!this.#isStopped) this.#options.failed(reason);
  }
}
