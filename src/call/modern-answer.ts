import { entryOf, type Reason, type RequestId } from '../protocol/faults.ts';
import { createFaultResponse } from '../protocol/message/gateway-fault.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Era } from '../protocol/revisions.ts';
import { createMessageBatch, type EventBatch } from '../reply/event-batch.ts';
import type { EventSink, Reply } from '../reply/reply.ts';
import type { CallReport } from './call-report.ts';

/** The destination of a request's messages and response. */
export interface ModernCallAnswer {
  /** Sends a notification of the request. Returns false if the client accepts only JSON or has left. */
  message(notification: Message): boolean;
  /**
   * Sends the response, which ends the answer.
   * @param status the HTTP status if the answer has not begun
   */
  response(response: Message, status: number): void;
  /** Sends an error of the catalogue in place of the response. */
  fault(reason: Reason, data?: Record<string, unknown>): void;
  /** The server is being started before it gets the request; see `CallReport`. */
  awaitsStart?(): void;
  started?(): void;
}

/** The request to answer, and the options of its answer. */
export interface ModernAnswerOptions {
  readonly reply: Reply;
  readonly id: RequestId;
  /** How long to wait for the first message before the answer becomes a stream anyway. */
  readonly commitAfterMs: number;
  /** How long a client may leave its stream unread. */
  readonly slowReaderMs: number;
  /** The era of the client; modern by default. */
  readonly era?: Era;
  /**
   * True to send server errors in band, with 200: a client that probes for the era takes a 5xx as a refusal of the era.
   */
  readonly hidesServerErrors?: boolean;
  /** The report of the call, if somebody wants reports. The endpoint reports a fault that is the whole answer. */
  readonly watch?: CallReport | undefined;
}

/**
 * The limit of bytes that wait for one slow client (P8). The gateway keeps reading from the server for the sake of
 * other clients. Beyond the limit, the waiting messages are lost with the stream, which is not resumable in this era.
 */
const maxUnreadBytes = 4 * 1024 * 1024;

/**
 * The answer to one request of the modern era (2026-07-28, basic/transports/streamable-http), or to one of the legacy
 * era without a session (2025-11-25, basic/transports, "Sending Messages to the Server"). The answer is JSON if the
 * response comes first, else an event stream.
 *
 * The answer commits to a status with the server's first message, since some errors have a status of their own. It
 * commits after `commitAfterMs` at the latest, so that no proxy drops the client. A later error is sent in band.
 */
export class ModernAnswer implements ModernCallAnswer {
  readonly #options: ModernAnswerOptions;
  #state: 'waiting' | 'streaming' | 'over' = 'waiting';
  #sink: EventSink | undefined;
  readonly #commitTimer: NodeJS.Timeout | undefined;
  /** The events that wait for a slow client. */
  #unread: EventBatch[] = [];
  #unreadBytes = 0;
  #isBehind = false;
  /** True if the response is the last member of `#unread`. */
  #isComplete = false;
  #slowTimer: NodeJS.Timeout | undefined;
  #onGone: ((reason: 'left' | 'slow') => void) | undefined;

  constructor(options: ModernAnswerOptions) {
    this.#options = options;
    const { reply, commitAfterMs } = options;
    reply.onGone(() => this.#handleLostClient('left'));
    if (reply.accepts.sse) this.#commitTimer = setTimeout(() => this.#commit(), commitAfterMs);
  }

  /** True once nothing more can be sent: the answer is complete, or the client has left. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /**
   * Calls the listener once if the client leaves before the answer is complete, or is disconnected as a slow reader.
   */
  onGone(listener: (reason: 'left' | 'slow') => void): void {
    this.#onGone = listener;
  }

  message({ text }: Message): boolean {
    if (this.#state === 'waiting' && this.#options.reply.accepts.sse) this.#commit();
    if (this.#state !== 'streaming') return false;
    const event = createMessageBatch(text);
    if (this.#isBehind && this.#unreadBytes + event.text.length > maxUnreadBytes) {
      this.#disconnectSlowClient();
      return false;
    }
    this.#write(event);
    return true;
  }

  response(response: Message, status: number): void {
    const { watch } = this.#options;
    watch?.responseReceived();
    this.#respond(response.text, status);
    watch?.answered(response);
  }

  #respond(text: Buffer, status: number): void {
    const { reply } = this.#options;
    if (this.#state === 'waiting' && (reply.accepts.json || status !== 200)) {
      this.#end();
      reply.json(text, {}, status);
      return;
    }
    this.#commit();
    if (this.#state !== 'streaming') return;
    this.#isComplete = true;
    const event = createMessageBatch(text);
    if (this.#isBehind) this.#buffer(event);
    else this.#finish(event);
  }

  awaitsStart(): void {
    this.#options.watch?.awaitsStart();
  }

  started(): void {
    this.#options.watch?.started();
  }

  fault(reason: Reason, data?: Record<string, unknown>): void {
    const { reply, id, era = 'modern', hidesServerErrors = false, watch } = this.#options;
    const isInBand = this.#state !== 'waiting' || (hidesServerErrors && entryOf(reason).status >= 500);
    if (isInBand) watch?.failed(reason);
    if (isInBand) return this.response(createFaultResponse(reason, id, data, era), 200);
    this.#end();
    reply.fault(reason, id, data);
  }

  #commit(): void {
    if (this.#state !== 'waiting') return;
    clearTimeout(this.#commitTimer);
    this.#state = 'streaming';
    const sink = this.#options.reply.stream();
    sink.onDrain(() => this.#catchUp());
    this.#sink = sink;
  }

  #write(event: EventBatch): void {
    if (this.#isBehind) return this.#buffer(event);
    if (this.#sink?.write(event) !== false) return;
    this.#isBehind = true;
    this.#slowTimer = setTimeout(() => this.#disconnectSlowClient(), this.#options.slowReaderMs);
  }

  #buffer(event: EventBatch): void {
    this.#unread.push(event);
    this.#unreadBytes += event.text.length;
  }

  /** Sends the waiting events, since the client reads again. */
  #catchUp(): void {
    if (!this.#isBehind) return;
    clearTimeout(this.#slowTimer);
    this.#isBehind = false;
    const unread = this.#unread;
    const last = this.#isComplete ? unread.pop() : undefined;
    this.#unread = [];
    this.#unreadBytes = 0;
    for (const event of unread) this.#write(event);
    if (last === undefined) return;
    if (this.#isBehind) this.#buffer(last);
    else this.#finish(last);
  }

  #finish(last: EventBatch): void {
    this.#end();
    this.#sink?.write(last);
    this.#sink?.end();
  }

  #disconnectSlowClient(): void {
    this.#handleLostClient('slow');
    this.#sink?.cut();
  }

  #handleLostClient(reason: 'left' | 'slow'): void {
    if (this.#state === 'over') return;
    this.#end();
    this.#options.watch?.left();
    this.#onGone?.(reason);
  }

  #end(): void {
    this.#state = 'over';
    this.#unread = [];
    this.#unreadBytes = 0;
    clearTimeout(this.#commitTimer);
    clearTimeout(this.#slowTimer);
  }
}
