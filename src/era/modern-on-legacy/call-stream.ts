import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { EventId } from '../../protocol/wire/event-id.ts';
import type { ClientPost, SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import { type EventPosition, SessionReply } from './session-reply.ts';

/** A stream that ends without the response is gone on with so often in a row, after these pauses. */
const maxContinued = 5;
const continuePauseMs = 200;

/** What a session or its stream says that is not there any more. */
const lostReasons: ReadonlySet<Reason> = new Set(['unknown_session', 'unknown_event_id', 'bad_event_id']);

/** Who hears what a session says of one call. */
export interface CallStreamOptions {
  readonly forwarded: ForwardedHeaders | undefined;
  /** The session as it is now, or why there is none. */
  find(): Promise<SessionHandle | Reason>;
  message(message: Message, place: EventPosition): void;
  /** Nothing more is heard of the call. */
  failed(reason: Reason): void;
}

/**
 * What a session says of one call, over all the connections and owners that it takes to hear it: a stream that ends without
 * the response is gone on with behind its newest event.
 */
export class CallStream {
  readonly #options: CallStreamOptions;
  #reply: SessionReply | undefined;
  #newest: EventId | undefined;
  #continued = 0;
  /** A session took up the stream since it ended last. */
  #isTakenUp = false;
  #hasLeft = false;

  constructor(options: CallStreamOptions) {
    this.#options = options;
  }

  /** True once a session was asked. */
  get hasBegun(): boolean {
    return this.#reply !== undefined;
  }

  /** The newest event that was heard; undefined as long as there was none. */
  get newest(): EventId | undefined {
    return this.#newest;
  }

  /** Hands the request to a session. Resolves with why it was not taken, or when it was. */
  post(handle: SessionHandle, post: ClientPost): Promise<Reason | undefined> {
    return new Promise((resolve) => {
      const taken = (): void => resolve(undefined);
      this.#reply = new SessionReply(
        {
          message: (message, place) => {
            taken();
            this.#hear(message, place);
          },
          fault: resolve,
          ended: () => {
            taken();
            this.#ended();
          },
          opened: taken,
        },
        this.#options.forwarded,
      );
      handle.post(post, this.#reply);
    });
  }

  /** Hears what comes behind an event of the call's stream. */
  listen(handle: SessionHandle, after: EventId): void {
    const listener = {
      message: (message: Message, place: EventPosition): void => this.#hear(message, place),
      fault: (reason: Reason): void => this.#fail(lostReasons.has(reason) ? 'outcome_unknown' : reason),
      ended: (): void => this.#ended(),
      opened: (): void => {
        this.#isTakenUp = true;
      },
    };
    this.#newest = after;
    this.#reply = new SessionReply(listener, this.#options.forwarded, after);
    handle.listen(after, this.#reply);
  }

  /** Hears no more. */
  leave(): void {
    this.#hasLeft = true;
    this.#reply?.disconnect();
  }

  #hear(message: Message, place: EventPosition): void {
    if (this.#hasLeft) return;
    this.#newest = place.at ?? this.#newest;
    this.#continued = 0;
    this.#options.message(message, place);
  }

  /** The stream is over without the response: its session moves, or this connection of it is too old. */
  #ended(): void {
    if (this.#hasLeft) return;
    const after = this.#newest;
    this.#continued += 1;
    // It may be heard by somebody else, who has sent the same answers, in turn.
    const isHopeless = this.#continued > maxContinued && !this.#isTakenUp;
    this.#isTakenUp = false;
    if (after === undefined || isHopeless) return this.#fail('outcome_unknown');
    detach(
      'session',
      delay(continuePauseMs * Math.min(this.#continued, maxContinued)).then(async () => {
        if (this.#hasLeft) return;
        const handle = await this.#options.find();
        if (this.#hasLeft) return;
        if (typeof handle === 'string') this.#fail('outcome_unknown');
        else this.listen(handle, after);
      }),
    );
  }

  #fail(reason: Reason): void {
    if (!this.#hasLeft) this.#options.failed(reason);
  }
}
