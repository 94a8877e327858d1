import { faultMessage, type Reason, type RequestId } from '../protocol/faults.ts';
import { createFaultResponse } from '../protocol/message/gateway-fault.ts';
import type { Message } from '../protocol/message/message.ts';
import { noData } from '../protocol/wire/sse.ts';
import type { EventSink, Headers, Reply, RequestAttempt } from '../reply/reply.ts';

/** The operations of a session that its answers need. */
export interface LegacyAnswerHost {
  /**
   * Opens a stream of the session on this connection, or without a connection if a later attempt may join the stream.
   */
  openStream(sink: EventSink | undefined, ids: readonly RequestId[], attempt?: RequestAttempt): number;
  /**
   * Adds an event to a stream. `settles` is the request that the event answers. `opens`, given with the first event,
   * are the requests that the stream is to answer.
   */
  emit(stream: number, text: Buffer, last: boolean, settles?: RequestId, opens?: readonly RequestId[]): void;
  /** Stores the emitted events now. Events of a server's burst are stored at the end of the burst without this call. */
  flush(): void;
  /** A response was lost with its connection. No event id had been sent, so the client cannot resume. */
  onUndeliverable(): void;
}

/** The destination of a call's messages and response. */
export interface LegacyCallAnswer {
  /** The number of the session's stream that carries the answer; undefined if there is none or the answer is lost. */
  readonly stream: number | undefined;
  /** True if messages that belong to the call can be sent with its answer. */
  readonly hasStream: boolean;
  /** True while the connection to the client's instance is lost and the client may come back; see `RequestAttempt`. */
  readonly isDetached?: boolean;
  message(message: Message): void;
  /**
   * Makes room for a new attempt of the client. A detached answer becomes a stream that the attempt can join. Any other
   * waiting answer is lost, and the attempt gets another answer in its place.
   */
  supersede?(): void;
  /** Takes the response to one of the requests. The last response completes the answer. */
  response(response: Message): void;
  /**
   * Ends one of the requests with an error of the catalogue.
   * @returns true if the error refuses the whole POST. The endpoint then reports the refusal (`CallEvent`).
   */
  fail(id: RequestId, reason: Reason): boolean;
  /**
   * Gives the answer up because another instance has the session now. The new owner completes an answer that is a
   * stream, from the log (`Streams.closeAll`). A client that still waits for the first byte gets an error: outcome
   * unknown (P3).
   */
  abandon(id: RequestId): void;
}

/** The answer to `initialize`. */
export interface OpeningAnswer extends LegacyCallAnswer {
  /** Passes an error, or an invalid answer of the server, on to the client. No session is opened. */
  refused(response: Message): void;
}

/** The POST to answer, and the options of its answer. */
export interface LegacyAnswerOptions {
  readonly reply: Reply;
  /** The ids of the requests in the POST: one, or those of a batch. */
  readonly ids: readonly RequestId[];
  /** True if the POST was an array. The JSON answer is then an array too. */
  readonly isBatch: boolean;
  /** True if a stream starts with a priming event. */
  readonly primes: boolean;
  /** How long to wait for the response before the answer becomes a stream. */
  readonly upgradeAfterMs: number;
  /** Larger messages do not go through the event log. */
  readonly maxEventBytes: number;
  /** Sent with the head of a successful answer. */
  readonly headers?: Headers;
}

/**
 * How long an answer is kept for a client that may come back. Its instance retries within seconds after it has lost the
 * connection or the store.
 */
const detachGraceMs = 30_000;

/**
 * The answer to one POST with requests (docs/design.md, D1): JSON if the responses come first. From the first other
 * message on, or after `upgradeAfterMs`, the answer is an event stream. A client whose connection breaks before the
 * first event has lost the answer; later it can resume. If only the connection to the client's instance is lost, the
 * answer is kept for a while as a stream. The next attempt joins that stream (`RequestAttempt`).
 */
export class LegacyAnswer implements OpeningAnswer {
  readonly #host: LegacyAnswerHost;
  readonly #options: LegacyAnswerOptions;
  readonly #collected: Message[] = [];
  #state: 'waiting' | 'streaming' | 'done' | 'lost' = 'waiting';
  #missing: number;
  #stream: number | undefined;
  /** True once the client has come back, or has not come back in time. */
  #hasDetachEnded = false;
  #detachTimer: NodeJS.Timeout | undefined;
  /** True once an event of the stream was written to a connection. The client can then resume. */
  #hasEvents = false;
  /** True once the log has an event of the stream. It then needs the end of the stream too. */
  #isLogged = false;
  #headers: Headers | undefined;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(host: LegacyAnswerHost, options: LegacyAnswerOptions) {
    this.#host = host;
    this.#options = options;
    this.#missing = options.ids.length;
    this.#headers = options.headers;
    options.reply.onGone(() => {
      if (!this.isDetached) this.#handleLostClient();
      else this.#detachTimer = setTimeout(() => this.#endDetach(), detachGraceMs).unref();
    });
    if (options.reply.accepts.sse) {
      this.#timer = setTimeout(() => {
        this.#upgrade();
        host.flush();
      }, options.upgradeAfterMs);
    }
  }

  get stream(): number | undefined {
    return this.#state === 'lost' ? undefined : this.#stream;
  }

  get hasStream(): boolean {
    return this.#state === 'streaming' || (this.#state === 'waiting' && this.#options.reply.accepts.sse);
  }

  get isDetached(): boolean {
    const { attempt, accepts } = this.#options.reply;
    return attempt?.isDetached === true && accepts.sse && !this.#hasDetachEnded && this.#state !== 'done';
  }

  supersede(): void {
    if (this.#state === 'waiting' && this.isDetached) {
      this.#upgrade();
      this.#host.flush();
    } else if (this.#state === 'waiting') this.#settle('lost');
    this.#hasDetachEnded = true;
    clearTimeout(this.#detachTimer);
  }

  message({ text }: Message): void {
    this.#upgrade();
    this.#emit(text, false);
  }

  response(response: Message): void {
    this.#missing -= 1;
    if (this.isDetached || !this.#options.reply.accepts.json) this.#upgrade();
    if (this.#state === 'lost') this.#host.onUndeliverable();
    if (this.#state === 'streaming' || this.#isLogged) this.#emitResponse(response);
    else if (this.#state === 'waiting') this.#collect(response);
  }

  /** Sends the error as the HTTP status if the answer has not begun, else in band. */
  fail(id: RequestId, reason: Reason): boolean {
    const isRefusal = this.#state === 'waiting' && !this.#options.isBatch && !this.isDetached;
    if (isRefusal) {
      this.#missing -= 1;
      this.#settle('done');
      this.#options.reply.fault(reason, id);
    } else this.response(createFaultResponse(reason, id));
    return isRefusal;
  }

  abandon(id: RequestId): void {
    if (this.#state === 'waiting' && !this.isDetached) this.fail(id, 'outcome_unknown');
  }

  refused(response: Message): void {
    this.#headers = undefined; // the headers are only for a success
    this.response(response);
  }

  #upgrade(): void {
    if (this.#state !== 'waiting') return;
    const { reply, ids, primes } = this.#options;
    this.#settle('streaming');
    this.#stream = this.#host.openStream(this.isDetached ? undefined : reply.stream(this.#headers), ids, reply.attempt);
    if (primes) this.#emit(noData, false);
    for (const response of this.#collected) this.#emit(this.#asEvent(response), false);
    this.#collected.length = 0;
  }

  #collect(response: Message): void {
    this.#collected.push(response);
    if (this.#missing > 0) return;
    const { reply, isBatch } = this.#options;
    this.#settle('done');
    reply.json(isBatch ? asArray(this.#collected.map(({ text }) => text)) : response.text, this.#headers);
  }

  #emitResponse(response: Message): void {
    const last = this.#missing === 0;
    if (last) this.#settle('done');
    this.#emit(this.#asEvent(response), last, response.id ?? undefined);
  }

  #emit(event: Buffer, last: boolean, settles?: RequestId): void {
    const opens = this.#isLogged ? undefined : this.#options.ids;
    this.#hasEvents ||= !this.isDetached && this.#state !== 'lost';
    this.#isLogged = true;
    this.#host.emit(this.#stream as number, event, last, settles, opens);
  }

  #asEvent(response: Message): Buffer {
    return eventText(response, this.#options.maxEventBytes);
  }

  #settle(state: 'streaming' | 'done' | 'lost'): void {
    this.#state = state;
    clearTimeout(this.#timer);
    if (state === 'done') clearTimeout(this.#detachTimer);
  }

  /** Treats the client as gone, since it has not come back in time. */
  #endDetach(): void {
    this.#hasDetachEnded = true;
    this.#handleLostClient();
  }

  #handleLostClient(): void {
    if (this.#state === 'waiting' || (this.#state === 'streaming' && !this.#hasEvents)) this.#settle('lost');
  }
}

/** Returns the text of a response as an event. A response that is too large for the log becomes an error. */
export const eventText = ({ id = null, text }: Message, maxEventBytes: number): Buffer =>
  text.length <= maxEventBytes ? text : Buffer.from(faultMessage('event_too_large', id));

function asArray(texts: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [Buffer.from('[')];
  texts.forEach((text, index) => {
    parts.push(...(index > 0 ? [Buffer.from(','), text] : [text]));
  });
  return Buffer.concat([...parts, Buffer.from(']')]);
}
