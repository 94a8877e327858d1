import { entryOf, faultMessage, type Reason, type RequestId } from '../protocol/faults.ts';
import { readGatewayMessage } from '../protocol/message/message.ts';
import type { Era } from '../protocol/revisions.ts';
import { encodeMessage } from '../protocol/wire/sse.ts';
import type { EventSink, Reply } from '../reply/reply.ts';
import type { CallReport } from './call-report.ts';

/** Where the messages and the response of a request go. */
export interface ModernCallAnswer {
  /** A notification that belongs to the request. False if it cannot be sent: the client takes only JSON, or is gone. */
  message(text: Buffer): boolean;
  /**
   * The response, the last thing.
   * @param status the HTTP status, where the answer has not begun
   * @param isError whether it is an error, where that is known
   */
  response(text: Buffer, status: number, isError?: boolean): void;
  /** An error of the catalogue in place of the response. */
  fault(reason: Reason, data?: Record<string, unknown>): void;
  /** The server is being started before it gets the request; see `OpenCall`. */
  awaitsStart?(): void;
  started?(): void;
}

/** How one request is to be answered. */
export interface ModernAnswerOptions {
  readonly reply: Reply;
  readonly id: RequestId;
  /** How long to wait for the first message before the answer becomes a stream all the same. */
  readonly commitAfterMs: number;
  /** How long a client may leave its stream unread. */
  readonly slowReaderMs: number;
  /** What the client speaks; the modern era if not said. */
  readonly era?: Era;
  /** Errors of the server are told in band, with 200: a client that asks for the era takes a 5xx for the end of it. */
  readonly hidesServerErrors?: boolean;
  /** Set if somebody is to be told how the call ends. Of a fault that is the whole answer its endpoint tells. */
  readonly watch?: CallReport | undefined;
}

/**
 * Messages that wait for one slow client have no more bytes than this (P8): the server is read on for the sake of all
 * others, and what cannot wait is lost with the stream, which is not resumable in this era.
 */
const maxUnreadBytes = 4 * 1024 * 1024;

/**
 * The answer to one request of the modern era (2026-07-28, basic/transports/streamable-http), or to one of the legacy era
 * without a session (2025-11-25, basic/transports, "Sending Messages to the Server"): JSON if the response comes first, else an event stream. It commits to a status only with the server's first message, since some errors have one of
 * their own, or after `commitAfterMs`, so that no proxy gives the client up; an error that comes later goes in band.
 */
export class ModernAnswer implements ModernCallAnswer {
  readonly #options: ModernAnswerOptions;
  #state: 'waiting' | 'streaming' | 'over' = 'waiting';
  #sink: EventSink | undefined;
  readonly #commitTimer: NodeJS.Timeout | undefined;
  /** What a client that does not keep up has not been sent yet. */
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #isBehind = false;
  /** The response is the last of `#unread`. */
  #isComplete = false;
  #slowTimer: NodeJS.Timeout | undefined;
  #onGone: ((why: 'left' | 'slow') => void) | undefined;

  constructor(options: ModernAnswerOptions) {
    this.#options = options;
    const { reply, commitAfterMs } = options;
    reply.onGone(() => this.#go('left'));
    if (reply.accepts.sse) this.#commitTimer = setTimeout(() => this.#commit(), commitAfterMs);
  }

  /** True once nothing more can be sent: the answer is complete, or its client is gone. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** The listener is called once if the client leaves before the answer is complete, or is cut because it does not read. */
  onGone(listener: (why: 'left' | 'slow') => void): void {
    this.#onGone = listener;
  }

  message(text: Buffer): boolean {
    if (this.#state === 'waiting' && this.#options.reply.accepts.sse) this.#commit();
    if (this.#state !== 'streaming') return false;
    const event = encodeMessage(text);
    if (this.#isBehind && this.#unreadBytes + event.length > maxUnreadBytes) {
      this.#cut();
      return false;
    }
    this.#write(event);
    return true;
  }

  response(text: Buffer, status: number, isError?: boolean): void {
    const { watch } = this.#options;
    watch?.responseReceived();
    this.#respond(text, status);
    watch?.answered({ text, isError: isError ?? readGatewayMessage(text).isError });
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
    if (this.#isBehind) this.#wait(encodeMessage(text));
    else this.#finish(encodeMessage(text));
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
    if (isInBand) return this.response(Buffer.from(faultMessage(reason, id, data, era)), 200);
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

  #write(event: Buffer): void {
    if (this.#isBehind) return this.#wait(event);
    if (this.#sink?.write(event) !== false) return;
    this.#isBehind = true;
    this.#slowTimer = setTimeout(() => this.#cut(), this.#options.slowReaderMs);
  }

  #wait(event: Buffer): void {
    this.#unread.push(event);
    this.#unreadBytes += event.length;
  }

  /** The client reads again. */
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
    if (this.#isBehind) this.#wait(last);
    else this.#finish(last);
  }

  #finish(last: Buffer): void {
    this.#end();
    this.#sink?.write(last);
    this.#sink?.end();
  }

  #cut(): void {
    this.#go('slow');
    this.#sink?.cut();
  }

  #go(why: 'left' | 'slow'): void {
    if (this.#state === 'over') return;
    this.#end();
    this.#options.watch?.left();
    this.#onGone?.(why);
  }

  #end(): void {
    this.#state = 'over';
    this.#unread = [];
    this.#unreadBytes = 0;
    clearTimeout(this.#commitTimer);
    clearTimeout(this.#slowTimer);
  }
}
