import { OrderedDelivery } from '../../backend/in-order.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, oneOf, readBodyWhenRoom } from '../../protocol/message/message.ts';
import type { EventId } from '../../protocol/wire/event-id.ts';
import type { SseEvent } from '../../protocol/wire/sse.ts';
import type { CompleteAnswer, EventSink, Reply, RequestFacts } from '../../reply/reply.ts';

/** The position of a message on its stream: `at` is its event, and resuming after `before` delivers it again. */
export interface EventPosition {
  readonly before: EventId | undefined;
  readonly at: EventId | undefined;
}

/** Receives the answer of a session. */
export interface SessionReplyListener {
  /** A message of the answer and its position; without `before` the message cannot be read again. */
  message(message: Message, position: EventPosition): void;
  /** The answer is an error of the catalogue, from the session or from the gateway. */
  fault(reason: Reason, data?: Record<string, unknown>): void;
  /** The messages were accepted; called only if they contain no request. */
  accepted?(): void;
  /** The answer has become a stream. */
  opened?(): void;
  /** No more messages come: the stream has ended or was cut. */
  ended(): void;
}

/**
 * A session's reply to the gateway itself, which is the client of its groups' sessions. It parses the messages that
 * would go to a client. A large message is parsed in turns of its own, and its stream waits meanwhile (P8). Otherwise it
 * applies no back-pressure: the listener bounds what it keeps.
 */
export class SessionReply implements Reply {
  readonly request: RequestFacts;
  readonly #listener: SessionReplyListener;
  readonly #gone: (() => void)[] = [];
  readonly #drained: (() => void)[] = [];
  readonly #inOrder = new OrderedDelivery('session', {
    hold: () => undefined,
    release: () => {
      for (const listener of this.#drained) listener();
    },
  });
  #isGone = false;
  /** The newest event that was read. */
  #at: EventId | undefined;

  /** @param after the event after which the stream is resumed */
  constructor(listener: SessionReplyListener, forwarded?: ForwardedHeaders, after?: EventId) {
    this.#listener = listener;
    this.request = { accepts: { json: true, sse: true }, forwarded };
    this.#at = after;
  }

  /** The newest event that was read, priming events included. */
  get newest(): EventId | undefined {
    return this.#at;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Stops reading: the session sees a client that has disconnected. */
  disconnect(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    for (const listener of this.#gone.splice(0)) listener();
  }

  onGone(listener: () => void): void {
    if (!this.#isGone) this.#gone.push(listener);
  }

  answer(answer: CompleteAnswer): void {
    if (this.#isGone) return;
    if (answer.kind === 'accepted') this.#listener.accepted?.();
    else if (answer.kind === 'fault') this.#listener.fault(answer.reason, answer.data);
    else {
      if (answer.kind === 'json') this.#handleText(answer.text, undefined);
      this.#end();
    }
  }

  stream(): EventSink {
    if (!this.#isGone) this.#listener.opened?.();
    return {
      write: (batch) => {
        for (const event of batch.events) this.#handleEvent(event);
        return !this.#inOrder.isBusy;
      },
      onDrain: (listener) => {
        this.#drained.push(listener);
      },
      onClose: (listener) => this.onGone(listener),
      end: () => this.#end(),
      cut: () => this.#end(),
    };
  }

  #handleEvent(event: SseEvent): void {
    if (event.kind === 'message') this.#handleText(event.data, event.id);
    if (event.kind === 'priming') this.#inOrder.after(() => this.#noteRead(event.id));
  }

  #handleText(text: Buffer, at: EventId | undefined): void {
    this.#inOrder.takeLater(
      () => readBodyWhenRoom(text, Number.POSITIVE_INFINITY),
      (body) => {
        const message = oneOf(body);
        if (message !== undefined && !this.#isGone) this.#listener.message(message, { before: this.#at, at });
        this.#noteRead(at);
      },
    );
  }

  #noteRead(at: EventId | undefined): void {
    this.#at = at ?? this.#at;
  }

  #end(): void {
    this.#inOrder.after(() => {
      if (!this.#isGone) this.#listener.ended();
    });
  }
}
