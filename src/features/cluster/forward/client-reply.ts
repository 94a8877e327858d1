import { deniesReaching, entryOf, faultMessage, type RequestId } from '../../../core/protocol/faults.ts';
import type { EventId } from '../../../core/protocol/wire/event-id.ts';
import {
  createFinalBatch,
  createMessageBatch,
  createPrimingBatch,
  createRetryBatch,
  type EventBatch,
} from '../../../core/reply/event-batch.ts';
import { ForwardingReply } from '../../../core/reply/forwarding-reply.ts';
import type {
  CompleteAnswer,
  EventSink,
  EveryFact,
  FaultAnswer,
  Headers,
  Reply,
  RequestFacts,
} from '../../../core/reply/reply.ts';
import { finalEventsFor } from '../../../core/reply/unresumable-stream.ts';
import { returnWindowMs } from '../../../core/session/outbound/streams.ts';

/**
 * A client's response at the ingress, which several owners may answer in turn. The response may begin before its owner
 * is known. Once its event stream is open, every later answer goes into that stream.
 */
export class ClientReply extends ForwardingReply {
  /** The requests that are answered, for errors on the stream. */
  readonly #ids: readonly RequestId[];
  #isContinued = false;
  /** The newest event id that the client has of the stream; undefined as long as it has none. */
  position: EventId | undefined;
  /** True if the client resumes a stream, and so may resume it elsewhere. */
  readonly #resumes: boolean;
  /**
   * Set once an owner may have passed the request on. From then on no fault may tell the client to send it again (P7).
   */
  mayHaveRun = false;
  #sink: EventSink | undefined;
  #retryMsOfPriming: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDone = false;
  #gone: AbortController | undefined;
  /** Settles the pending `drains` call; at most one is pending. */
  #settleDrain: ((isDrained: boolean) => void) | undefined;

  /** @param after the event id with which the client resumes a stream */
  constructor(reply: Reply, ids: readonly RequestId[], after?: EventId) {
    super(reply);
    this.#ids = ids;
    this.position = after;
    this.#resumes = after !== undefined;
    reply.onGone(() => {
      clearTimeout(this.#timer);
      this.#gone?.abort();
    });
  }

  /** True once an event id of the stream was sent. */
  override get isContinued(): boolean {
    return this.#isContinued;
  }

  override set isContinued(isContinued: boolean) {
    this.#isContinued = isContinued;
  }

  /**
   * Aborted when the client is gone. All attempts share one signal, or each of them would leave a listener at the
   * reply.
   */
  get gone(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.isGone) this.#gone.abort();
    return this.#gone.signal;
  }

  /** Waits until the client has read everything. False if the client is too slow or gone. For one caller at a time. */
  drains(withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isDrained: boolean): void => {
        clearTimeout(timer);
        this.#settleDrain = undefined;
        resolve(isDrained);
      };
      const timer = setTimeout(settle, withinMs, false);
      this.#settleDrain = settle;
    });
  }

  /**
   * Opens the stream if nothing was answered by then: a GET is never refused because its owner is away (P7). A resumed
   * stream begins with a priming event if `retryMs` is given. Otherwise clients would forget the event id that they
   * resume (SDK v1 and v2).
   */
  openAfter(ms: number, retryMs: number | undefined): void {
    this.#retryMsOfPriming = retryMs;
    this.#timer = setTimeout(() => {
      if (!this.#isDone) this.#openPrimed();
    }, ms);
  }

  /** The open stream, or a new one that begins with the priming event of a resumed stream. */
  #openPrimed(): EventSink {
    const sink = this.stream();
    if (this.position === undefined || this.#retryMsOfPriming === undefined || this.isContinued) return sink;
    sink.write(createPrimingBatch(this.position, this.#retryMsOfPriming));
    this.isContinued = true;
    return sink;
  }

  /**
   * True if the client was sent exactly this event id. Replayed events come after the requested id, so only a priming
   * event repeats it.
   */
  isAt({ stream, epoch, seq }: EventId): boolean {
    const { isContinued, position } = this;
    return isContinued && position?.stream === stream && position.epoch === epoch && position.seq === seq;
  }

  /** True once the head of an event stream was sent. */
  get isStream(): boolean {
    return this.#sink !== undefined;
  }

  /** True once nothing can be answered any more. */
  get isDone(): boolean {
    return this.#isDone || this.reply.isGone;
  }

  override get request(): RequestFacts {
    const { request } = this.reply;
    if (!this.isStream) return request;
    const { forwarded, requestId, receivedAt } = request;
    return { accepts: { json: false, sse: true }, forwarded, requestId, receivedAt } satisfies EveryFact;
  }

  override answer(answer: CompleteAnswer): void {
    switch (answer.kind) {
      case 'json':
        if (this.#sink !== undefined) return this.#endWith(createMessageBatch(answer.text));
        break;
      case 'nothing':
        if (this.#sink !== undefined) return this.#endWith(undefined);
        break;
      case 'accepted':
      case 'removed':
        break;
      case 'fault':
        return this.#fault(answer);
      default:
        // May it come where a stream is open? May it invite the client to send the request again (`mayHaveRun`)?
        answer satisfies never;
    }
    this.#finish(() => this.reply.answer(answer));
  }

  #fault(reported: FaultAnswer): void {
    // The sender of a "not run" fault knows only the latest attempt. An earlier attempt may have reached the server.
    const { reason } = reported;
    const isMisleading = this.mayHaveRun && (deniesReaching(reason) || entryOf(reason).retryAfterS !== undefined);
    const answer = isMisleading ? { ...reported, reason: 'outcome_unknown' as const, data: undefined } : reported;
    if (this.#sink === undefined) this.#finish(() => this.reply.answer(answer));
    else this.#endWith(this.#finalEvents(answer));
  }

  /**
   * Ends the stream so that its client reconnects to another instance, at a random time within these milliseconds. In a
   * process that was frozen, this may happen before the timer of `openAfter`. The client still gets its answer.
   */
  endForReconnect(withinMs = returnWindowMs): void {
    this.#finish(() => {
      const sink = this.#openPrimed();
      sink.write(createRetryBatch(Math.random() * withinMs));
      sink.end();
    });
  }

  /** Ends the open stream. Ending its sink directly would leave this reply open. */
  endStream(): void {
    this.#endWith(undefined);
  }

  /** Cuts the connection of the open stream. */
  cutStream(): void {
    this.#finish(() => this.#sink?.cut());
  }

  /**
   * The open stream, or a new one. Listeners that earlier owners attached stay attached and must ignore events once
   * they are replaced.
   */
  override stream(headers?: Headers): EventSink {
    clearTimeout(this.#timer);
    if (this.#sink !== undefined) return this.#sink;
    const sink = this.reply.stream(headers);
    this.#sink = sink;
    sink.onDrain(() => this.#settleDrain?.(true));
    sink.onClose(() => this.#settleDrain?.(false));
    return sink;
  }

  /**
   * The last events of a stream that fails. A resumed stream gets none unless it is lost, because its client comes
   * back.
   */
  #finalEvents({ reason, data }: FaultAnswer): EventBatch | undefined {
    const { position } = this;
    if (this.#resumes) return position && finalEventsFor(reason, position);
    const texts = this.#ids.map((id) => faultMessage(reason, id, data));
    if (texts.length === 0) return undefined;
    // A client that has an event id would come back with it.
    if (position !== undefined) return createFinalBatch(texts, position);
    return createMessageBatch(...texts.map((text) => Buffer.from(text)));
  }

  #endWith(events: EventBatch | undefined): void {
    this.#finish(() => {
      if (events !== undefined) this.#sink?.write(events);
      this.#sink?.end();
    });
  }

  #finish(answer: () => void): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    answer();
  }
}
