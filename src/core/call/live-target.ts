import type { Message } from '../protocol/message/message.ts';
import { createMessageBatch, type EventBatch } from '../reply/event-batch.ts';
import type { EventSink } from '../reply/reply.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import type { Answer, AnswerTarget } from './answer.ts';

/**
 * The limit of bytes that wait for one slow client (P8). The gateway keeps reading from the server for the sake of
 * other clients. Beyond the limit, the waiting messages are lost with the stream, which cannot be resumed.
 */
const maxUnreadBytes = 4 * 1024 * 1024;

/**
 * Writes the events of an answer to its connection at once (2026-07-28, basic/transports/streamable-http). Events wait
 * for a slow client, within limits of bytes and time.
 */
export class LiveTarget implements AnswerTarget {
  readonly isLogged = false;
  readonly #slowReaderMs: number;
  #answer: Answer | undefined;
  #sink: EventSink | undefined;
  /** The events that wait; undefined while the client keeps up. */
  #unread: EventBatch[] | undefined;
  #unreadBytes = 0;
  /** The last event, if it waits after them. */
  #last: EventBatch | undefined;
  #slowTimer: TimeLimit | undefined;

  /** @param slowReaderMs how long a client may leave its stream unread */
  constructor(slowReaderMs: number) {
    this.#slowReaderMs = slowReaderMs;
  }

  get hasUnread(): boolean {
    return this.#unread !== undefined;
  }

  open(answer: Answer): void {
    this.#answer = answer;
    this.#sink = answer.connect();
    this.#sink?.onDrain(() => this.#catchUp());
  }

  write({ text }: Message): boolean {
    const event = createMessageBatch(text);
    if (this.#unread !== undefined && this.#unreadBytes + event.text.length > maxUnreadBytes) {
      this.#cutOff();
      return false;
    }
    this.#send(event);
    return true;
  }

  respond({ text }: Message, isLast: boolean): void {
    const event = createMessageBatch(text);
    if (isLast) this.#finish(event);
    else this.#send(event);
  }

  close(): void {
    this.#unread = undefined;
    this.#unreadBytes = 0;
    this.#last = undefined;
    this.#slowTimer?.clear();
  }

  #send(event: EventBatch): void {
    if (this.#unread !== undefined) {
      this.#unread.push(event);
      this.#unreadBytes += event.text.length;
    } else if (this.#sink?.write(event) === false) {
      this.#unread = [];
      this.#slowTimer = new TimeLimit(() => this.#cutOff(), this.#slowReaderMs);
    }
  }

  #finish(last: EventBatch): void {
    if (this.#unread !== undefined) {
      this.#last = last;
      return;
    }
    this.#sink?.write(last);
    this.#sink?.end();
  }

  /** Sends the waiting events, since the client reads again. */
  #catchUp(): void {
    const unread = this.#unread ?? [];
    const last = this.#last;
    this.close();
    for (const event of unread) this.#send(event);
    if (last !== undefined) this.#finish(last);
  }

  #cutOff(): void {
    this.#answer?.cutOff();
    this.#sink?.cut();
  }
}
