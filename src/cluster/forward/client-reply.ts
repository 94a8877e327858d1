import { deniesReaching, entryOf, faultMessage, type Reason, type RequestId } from '../../protocol/faults.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import type { EventId } from '../../protocol/wire/event-id.ts';
import { encodeEvents, encodeFinalEvents, encodeMessage, encodeRetry, noData } from '../../protocol/wire/sse.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
import { finalEventsFor } from '../../reply/unresumable-stream.ts';
import { returnWindowMs } from '../../session/events/streams.ts';

/**
 * A client's response that may be answered by several owners of the session in turn, or that begins before it is known who
 * answers it: once its event stream is open, every later answer goes into that stream.
 */
export class ClientReply extends ForwardingReply {
  /** The requests that are answered, for errors in band. */
  readonly #ids: readonly RequestId[];
  /** Set once an event id of the stream was sent. */
  isContinued = false;
  /** The newest event id that the client has of the stream; undefined as long as it has none. */
  position: EventId | undefined;
  /** The client resumes a stream, and may do so elsewhere. */
  readonly #resumes: boolean;
  /** Set once an owner may have passed the request on: then no fault may tell the client to send it again (P7). */
  mayHaveRun = false;
  #sink: EventSink | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDone = false;
  readonly #gone = new AbortController();
  /** Whoever waits for the client to read, one at a time. */
  #onDrained: ((isDrained: boolean) => void) | undefined;

  /** @param after the event id that the client resumes a stream with */
  constructor(reply: Reply, ids: readonly RequestId[], after?: EventId) {
    super(reply);
    this.#ids = ids;
    this.position = after;
    this.#resumes = after !== undefined;
    if (reply.isGone) this.#gone.abort();
    reply.onGone(() => {
      clearTimeout(this.#timer);
      this.#gone.abort();
    });
  }

  /** Aborted when the client is gone. One signal for all attempts: each of them would leave a listener at the reply. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Waits until the client has read what it was sent; false if it does not in time, or is gone. For one caller at a time. */
  drains(withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isDrained: boolean): void => {
        clearTimeout(timer);
        this.#onDrained = undefined;
        resolve(isDrained);
      };
      const timer = setTimeout(settle, withinMs, false);
      this.#onDrained = settle;
    });
  }

  /**
   * Opens the stream if nothing was answered by then: a GET is never refused because its owner is away (P7). One that resumes
   * begins with a priming event where `retryMs` is given, or clients would forget what they resume (SDK v1 and v2).
   */
  openAfter(ms: number, retryMs: number | undefined): void {
    this.#timer = setTimeout(() => {
      if (this.#isDone) return;
      const sink = this.stream();
      if (this.position === undefined || retryMs === undefined || this.isContinued) return;
      sink.write(encodeEvents([{ ...this.position, data: noData }], retryMs, this.position.requests));
      this.isContinued = true;
    }, ms);
  }

  /** True if the client was sent this very place. Events are behind the place that is asked for: only priming events name it. */
  isAt({ stream, epoch, seq }: EventId): boolean {
    const { isContinued, position: place } = this;
    return isContinued && place?.stream === stream && place.epoch === epoch && place.seq === seq;
  }

  /** True once the head of an event stream was sent. */
  get isStream(): boolean {
    return this.#sink !== undefined;
  }

  /** True once nothing can be answered any more. */
  get isDone(): boolean {
    return this.#isDone || this.reply.isGone;
  }

  override get accepts(): Accepts {
    return this.isStream ? { json: false, sse: true } : this.reply.accepts;
  }

  json(text: Buffer, headers?: Headers): void {
    if (this.#sink === undefined) this.#finish(() => this.reply.json(text, headers));
    else this.#endWith(encodeMessage(text));
  }

  accepted(): void {
    this.#finish(() => this.reply.accepted());
  }

  nothing(): void {
    if (this.#sink === undefined) this.#finish(() => this.reply.nothing());
    else this.#endWith(undefined);
  }

  removed(): void {
    this.#finish(() => this.reply.removed());
  }

  fault(said: Reason, id: RequestId | null, of?: Record<string, unknown>): void {
    // A fault that says "not run" knows of what was asked last alone: an earlier asking may have reached the server.
    const isMisleading = this.mayHaveRun && (deniesReaching(said) || entryOf(said).retryAfterS !== undefined);
    const [reason, data] = isMisleading ? (['outcome_unknown'] as const) : ([said, of] as const);
    if (this.#sink === undefined) this.#finish(() => this.reply.fault(reason, id, data));
    else this.#endWith(this.#lastWords(reason, data));
  }

  /** Ends the stream for its client to go on with another instance, some time within these milliseconds. */
  endForReconnect(withinMs = returnWindowMs): void {
    this.#finish(() => {
      this.#sink?.write(encodeRetry(Math.random() * withinMs));
      this.#sink?.end();
    });
  }

  /** The open stream, or a new one. Listeners of earlier owners stay; they have to know that they are out of office. */
  stream(headers?: Headers): EventSink {
    clearTimeout(this.#timer);
    if (this.#sink !== undefined) return this.#sink;
    const sink = this.reply.stream(headers);
    this.#sink = sink;
    sink.onDrain(() => this.#onDrained?.(true));
    sink.onClose(() => this.#onDrained?.(false));
    return sink;
  }

  /** Of a stream that is resumed nothing is said unless it is lost: its client comes back. */
  #lastWords(reason: Reason, data: Record<string, unknown> | undefined): Buffer | undefined {
    const { position: place } = this;
    if (this.#resumes) return place && finalEventsFor(reason, place);
    const texts = this.#ids.map((id) => faultMessage(reason, id, data));
    // A client that has an event id would come back with it.
    if (place !== undefined && texts.length > 0) return encodeFinalEvents(texts, place);
    return Buffer.concat(texts.map((text) => encodeMessage(Buffer.from(text))));
  }

  #endWith(events: Buffer | undefined): void {
    this.#finish(() => {
      if (events !== undefined && events.length > 0) this.#sink?.write(events);
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
