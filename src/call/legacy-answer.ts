import { faultMessage, type Reason, type RequestId } from '../protocol/faults.ts';
import { noData } from '../protocol/wire/sse.ts';
import type { EventSink, Headers, Reply, RequestAttempt } from '../reply/reply.ts';

/** What the answers of a session need of it. */
export interface LegacyAnswerHost {
  /** A new stream of the session, fed to this connection; to none where its client may join it later, as it was asked. */
  openStream(sink: EventSink | undefined, ids: readonly RequestId[], asking?: RequestAttempt): number;
  /**
   * Adds an event to a stream; `settles` is the request that it answers, and `opens`, with the first one, are those that the
   * stream is to answer.
   */
  emit(stream: number, text: Buffer, last: boolean, settles?: RequestId, opens?: readonly RequestId[]): void;
  /** What was emitted outside of a burst of the server is to be stored now. */
  flush(): void;
  /** A response was lost with its connection: no event id had been sent, so nobody can collect it. */
  onUndeliverable(id: RequestId): void;
}

/** Where the messages and the response of a call go. */
export interface LegacyCallAnswer {
  /** The stream of the session that the answer goes to; undefined while it is none, or if it is lost. */
  readonly stream: number | undefined;
  /** True if messages that belong to the call can be sent with its answer. */
  readonly hasStream: boolean;
  /** True while the way to the client is lost, and it may come back for the answer; see `Asking`. */
  readonly isDetached?: boolean;
  message(text: Buffer): void;
  /**
   * The client asks again, on another way: what there is of the answer becomes a stream for it to join, if it was kept for it.
   * Else this is lost, and another answer takes its place.
   */
  supersede?(): void;
  /** Takes the response to one of the requests; with the last one the answer is complete. */
  response(id: RequestId, text: Buffer): void;
  /**
   * Ends one of the requests with an error of the catalogue.
   * @returns true if that is a refusal of the whole POST, of which its endpoint tells (`CallObserver`)
   */
  fail(id: RequestId, reason: Reason): boolean;
  /**
   * Another instance has the session now: an answer that is a stream is its to complete, from what the log has of it
   * (`Streams.closeAll`). A client that still waits for the answer to begin is told that the outcome is not known (P3).
   */
  abandon(id: RequestId): void;
}

/** The answer to `initialize`. */
export interface OpeningAnswer extends LegacyCallAnswer {
  /** The server answered with an error, or with what is no answer: it goes to the client, and there is no session. */
  refused(id: RequestId, text: Buffer): void;
}

/** How one POST is to be answered. */
export interface LegacyAnswerOptions {
  readonly reply: Reply;
  /** The ids of the requests in the POST: one, or those of a batch. */
  readonly ids: readonly RequestId[];
  /** True if the POST was an array, so that its JSON answer is one too. */
  readonly isBatch: boolean;
  /** True to begin a stream with a priming event. */
  readonly primes: boolean;
  /** How long to wait for the response before the answer becomes a stream. */
  readonly upgradeAfterMs: number;
  /** Larger messages do not go through the event log. */
  readonly maxEventBytes: number;
  /** Sent with the head of a successful answer. */
  readonly headers?: Headers;
}

/** So long an answer is kept for a client that may come back: an instance that was cut off, or whose store was, asks again within seconds. */
const maxPartedMs = 30_000;

/**
 * The answer to one POST with requests (docs/design.md, D1): JSON if the responses come first, else, from the first
 * other message or after `upgradeAfterMs` on, an event stream. A client whose connection breaks before an event was
 * sent has lost the answer; after that it can resume. Where only the way to its instance is lost, the answer is kept as a
 * stream for a while, which it joins when it is asked for again (`Asking`).
 */
export class LegacyAnswer implements OpeningAnswer {
  readonly #host: LegacyAnswerHost;
  readonly #options: LegacyAnswerOptions;
  readonly #collected: { readonly id: RequestId; readonly text: Buffer }[] = [];
  #state: 'waiting' | 'streaming' | 'done' | 'lost' = 'waiting';
  #missing: number;
  #stream: number | undefined;
  /** The client has not come back in time, or has. */
  #isPartingOver = false;
  #partingTimer: NodeJS.Timeout | undefined;
  /** An event of the stream was handed to a connection, so that the client can resume. */
  #hasEvents = false;
  /** The log has something of the stream, and needs its end. */
  #isLogged = false;
  #headers: Headers | undefined;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(host: LegacyAnswerHost, options: LegacyAnswerOptions) {
    this.#host = host;
    this.#options = options;
    this.#missing = options.ids.length;
    this.#headers = options.headers;
    options.reply.onGone(() => {
      if (!this.isDetached) this.#lose();
      else this.#partingTimer = setTimeout(() => this.#endParting(), maxPartedMs).unref();
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
    const { attempt: asking, accepts } = this.#options.reply;
    return asking?.isDetached === true && accepts.sse && !this.#isPartingOver && this.#state !== 'done';
  }

  supersede(): void {
    if (this.#state === 'waiting' && this.isDetached) {
      this.#upgrade();
      this.#host.flush();
    } else if (this.#state === 'waiting') this.#settle('lost');
    this.#isPartingOver = true;
    clearTimeout(this.#partingTimer);
  }

  message(text: Buffer): void {
    this.#upgrade();
    this.#emit(text, false);
  }

  response(id: RequestId, text: Buffer): void {
    this.#missing -= 1;
    if (this.isDetached || !this.#options.reply.accepts.json) this.#upgrade();
    if (this.#state === 'lost') this.#host.onUndeliverable(id);
    if (this.#state === 'streaming' || this.#isLogged) this.#emitResponse(id, text);
    else if (this.#state === 'waiting') this.#collect(id, text);
  }

  /**
   * Ends one of the requests with an error of the catalogue: as the HTTP status where the answer has not begun, else
   * in band.
   */
  fail(id: RequestId, reason: Reason): boolean {
    const isRefusal = this.#state === 'waiting' && !this.#options.isBatch && !this.isDetached;
    if (isRefusal) {
      this.#missing -= 1;
      this.#settle('done');
      this.#options.reply.fault(reason, id);
    } else this.response(id, Buffer.from(faultMessage(reason, id)));
    return isRefusal;
  }

  abandon(id: RequestId): void {
    if (this.#state === 'waiting' && !this.isDetached) this.fail(id, 'outcome_unknown');
  }

  refused(id: RequestId, text: Buffer): void {
    this.#headers = undefined; // those of a success
    this.response(id, text);
  }

  #upgrade(): void {
    if (this.#state !== 'waiting') return;
    const { reply, ids, primes } = this.#options;
    this.#settle('streaming');
    this.#stream = this.#host.openStream(this.isDetached ? undefined : reply.stream(this.#headers), ids, reply.attempt);
    if (primes) this.#emit(noData, false);
    for (const { id, text } of this.#collected) this.#emit(this.#asEvent(id, text), false);
    this.#collected.length = 0;
  }

  #collect(id: RequestId, text: Buffer): void {
    this.#collected.push({ id, text });
    if (this.#missing > 0) return;
    const { reply, isBatch } = this.#options;
    this.#settle('done');
    reply.json(isBatch ? asArray(this.#collected.map((response) => response.text)) : text, this.#headers);
  }

  #emitResponse(id: RequestId, text: Buffer): void {
    const last = this.#missing === 0;
    if (last) this.#settle('done');
    this.#emit(this.#asEvent(id, text), last, id);
  }

  #emit(event: Buffer, last: boolean, settles?: RequestId): void {
    const opens = this.#isLogged ? undefined : this.#options.ids;
    this.#hasEvents ||= !this.isDetached && this.#state !== 'lost';
    this.#isLogged = true;
    this.#host.emit(this.#stream as number, event, last, settles, opens);
  }

  #asEvent(id: RequestId, text: Buffer): Buffer {
    return eventText(id, text, this.#options.maxEventBytes);
  }

  #settle(state: 'streaming' | 'done' | 'lost'): void {
    this.#state = state;
    clearTimeout(this.#timer);
    if (state === 'done') clearTimeout(this.#partingTimer);
  }

  /** Whoever was to come back has not: it is as for a client that is gone. */
  #endParting(): void {
    this.#isPartingOver = true;
    this.#lose();
  }

  #lose(): void {
    if (this.#state === 'waiting' || (this.#state === 'streaming' && !this.#hasEvents)) this.#settle('lost');
  }
}

/** A response as an event: one that is too large for the log becomes an error. */
export const eventText = (id: RequestId, text: Buffer, maxEventBytes: number): Buffer =>
  text.length <= maxEventBytes ? text : Buffer.from(faultMessage('event_too_large', id));

function asArray(texts: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [Buffer.from('[')];
  texts.forEach((text, index) => {
    parts.push(...(index > 0 ? [Buffer.from(','), text] : [text]));
  });
  return Buffer.concat([...parts, Buffer.from(']')]);
}
