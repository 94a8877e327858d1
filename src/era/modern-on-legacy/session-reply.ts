import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, readOne } from '../../protocol/message/message.ts';
import { type EventId, parseEventId } from '../../protocol/wire/event-id.ts';
import { decodeEvents } from '../../protocol/wire/sse.ts';
import type { EventSink, Reply } from '../../reply/reply.ts';

/** Where a message stands on its stream: behind which event one has to go on to hear it again, or what comes after it. */
export interface EventPosition {
  readonly before: EventId | undefined;
  readonly at: EventId | undefined;
}

/** Who hears what a session answers. */
export interface SessionReplyListener {
  /** A message of the answer, and where it stands; without a place it can be heard once only. */
  message(message: Message, place: EventPosition): void;
  /** The answer of the session, or of the gateway for it, is an error of the catalogue. */
  fault(reason: Reason, data?: Record<string, unknown>): void;
  /** What was sent was taken, if there was no request in it. */
  accepted?(): void;
  /** The answer has become a stream. */
  opened?(): void;
  /** Nothing more comes on this way: the stream has ended, or was cut. */
  ended(): void;
}

/**
 * A session's reply to the gateway itself, which is the client of its groups' sessions: what would go out as JSON or as events
 * is read. It never asks the session to wait: whoever listens bounds what it keeps (P8).
 */
export class SessionReply implements Reply {
  readonly accepts = { json: true, sse: true };
  readonly forwarded: ForwardedHeaders | undefined;
  readonly #listener: SessionReplyListener;
  readonly #gone: (() => void)[] = [];
  #isGone = false;
  /** The newest event that was heard. */
  #at: EventId | undefined;

  /** @param after where the stream is gone on with */
  constructor(listener: SessionReplyListener, forwarded?: ForwardedHeaders, after?: EventId) {
    this.#listener = listener;
    this.forwarded = forwarded;
    this.#at = after;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Hears no more. The session sees a client that is gone. */
  disconnect(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    for (const listener of this.#gone.splice(0)) listener();
  }

  onGone(listener: () => void): void {
    if (!this.#isGone) this.#gone.push(listener);
  }

  json(text: Buffer): void {
    this.#hear(text, undefined);
    this.#end();
  }

  accepted(): void {
    if (!this.#isGone) this.#listener.accepted?.();
  }

  removed(): void {
    this.#end();
  }

  nothing(): void {
    this.#end();
  }

  fault(reason: Reason, _id: unknown, data?: Record<string, unknown>): void {
    if (!this.#isGone) this.#listener.fault(reason, data);
  }

  stream(): EventSink {
    if (!this.#isGone) this.#listener.opened?.();
    return {
      write: (text) => {
        for (const { id, type, data } of decodeEvents(text)) {
          const at = id === undefined ? undefined : parseEventId(id);
          if (type === 'message' && data !== undefined) this.#hear(data, at);
          this.#at = at ?? this.#at;
        }
        return true;
      },
      onDrain: () => undefined,
      onClose: (listener) => this.onGone(listener),
      end: () => this.#end(),
      cut: () => this.#end(),
    };
  }

  #hear(text: Buffer, at: EventId | undefined): void {
    if (this.#isGone) return;
    const message = readOne(text);
    if (message !== undefined) this.#listener.message(message, { before: this.#at, at });
  }

  #end(): void {
    if (!this.#isGone) this.#listener.ended();
  }
}
