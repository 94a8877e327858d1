import { setTimeout as delay } from 'node:timers/promises';
import type { FaultData } from '../../call/call-answer.ts';
import { deniesReaching, type Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { EventId } from '../../protocol/wire/event-id.ts';
import type { ClientPost, SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import { type EventPosition, SessionReply } from './session-reply.ts';

/** How often in a row a stream without the response is resumed, and the pause before each attempt. */
const maxResumes = 5;
const resumePauseMs = 200;

/** The faults that mean that the session or its stream is gone. */
const lostReasons: ReadonlySet<Reason> = new Set(['unknown_session', 'unknown_event_id', 'bad_event_id']);

/** True for a fault of a resume after which the call may still run. Only the resume did not reach the session. */
const isLoss = (reason: Reason): boolean => lostReasons.has(reason) || deniesReaching(reason);

/** The listener of a call's stream, and the access to its session. */
export interface CallStreamOptions {
  readonly forwarded: ForwardedHeaders | undefined;
  /** Finds the current session, or the reason why there is none. */
  find(): Promise<SessionHandle | Reason>;
  message(message: Message, position: EventPosition): void;
  /** No more messages of the call can be read, for this reason. */
  failed(reason: Reason): void;
}

/**
 * Reads the messages of one call, across all connections and owners of its session. A stream that ends without the
 * response is resumed after its newest event.
 */
export class CallStream {
  readonly #options: CallStreamOptions;
  #reply: SessionReply | undefined;
  #newest: EventId | undefined;
  #resumes = 0;
  /** True if a session has resumed the stream since it last ended. */
  #isResumed = false;
  #isStopped = false;
  /** What the newest refusal of the request says beside its reason. */
  refusalData: FaultData | undefined;

  constructor(options: CallStreamOptions) {
    this.#options = options;
  }

  /** True once the request was sent or the stream was resumed. */
  get hasBegun(): boolean {
    return this.#reply !== undefined;
  }

  /** The newest event that was read; undefined until there is one. */
  get newest(): EventId | undefined {
    return this.#newest;
  }

  /**
   * Sends the request to a session. Resolves with the reason if it was refused, or with nothing once it was accepted.
   */
  post(handle: SessionHandle, post: ClientPost): Promise<Reason | undefined> {
    return new Promise((resolve) => {
      const accept = (): void => resolve(undefined);
      this.#reply = new SessionReply(
        {
          message: (message, position) => {
            accept();
            this.#handleMessage(message, position);
          },
          fault: (reason, data) => {
            this.refusalData = data;
            resolve(reason);
          },
          ended: () => {
            accept();
            this.#handleEnd();
          },
          opened: accept,
        },
        this.#options.forwarded,
      );
      handle.post(post, this.#reply);
    });
  }

  /** Resumes the call's stream after an event. */
  listen(handle: SessionHandle, after: EventId): void {
    const listener = {
      message: (message: Message, position: EventPosition): void => this.#handleMessage(message, position),
      fault: (reason: Reason): void => this.#fail(isLoss(reason) ? 'outcome_unknown' : reason),
      ended: (): void => this.#handleEnd(),
      opened: (): void => {
        this.#isResumed = true;
      },
    };
    this.#newest = after;
    this.#reply = new SessionReply(listener, this.#options.forwarded, after);
    handle.listen(after, this.#reply);
  }

  /** Stops reading. */
  stop(): void {
    this.#isStopped = true;
    this.#reply?.disconnect();
  }

  #handleMessage(message: Message, position: EventPosition): void {
    if (this.#isStopped) return;
    this.#newest = position.at ?? this.#newest;
    this.#resumes = 0;
    this.#options.message(message, position);
  }

  /** Resumes a stream that ended without the response: its session moved, or the connection grew too old. */
  #handleEnd(): void {
    if (this.#isStopped) return;
    const after = this.#newest ?? this.#reply?.newest; // a stream without a message may have a priming event
    this.#resumes += 1;
    // A taken-up stream is not hopeless: clients that sent the same answers may be reading it in turn.
    const isHopeless = this.#resumes > maxResumes && !this.#isResumed;
    this.#isResumed = false;
    if (after === undefined || isHopeless) return this.#fail('outcome_unknown');
    detach(
      'session',
      delay(resumePauseMs * Math.min(this.#resumes, maxResumes)).then(async () => {
        if (this.#isStopped) return;
        const handle = await this.#options.find();
        if (this.#isStopped) return;
        if (typeof handle === 'string') this.#fail('outcome_unknown');
        else this.listen(handle, after);
      }),
    );
  }

  #fail(reason: Reason): void {
    if (!this.#isStopped) this.#options.failed(reason);
  }
}
