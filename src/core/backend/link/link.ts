// src/core/backend/link: the one object between a transport and its user, and what sees or changes the messages on the way.
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { contain, detach, reportFault } from '../../util/boundary.ts';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  type CloseOptions,
  endedByFault,
  type OpenBackend,
  type OpenOptions,
  type RequestIds,
  type Resume,
  type Sent,
} from '../backend.ts';

/** A message for the server, and the headers of the request that brought it. */
export interface Outgoing {
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/**
 * Sees or changes what passes between one backend and its user. A subclass has only the hooks that it needs; an absent
 * hook costs nothing. The hooks for messages return what goes on at once. Every other hook passes on what it got with the
 * method `pass…`, at once or later, or keeps it. Messages can go on later in the same way.
 */
export abstract class Interceptor {
  #link: Link | undefined;
  #index = 0;

  /** A message of the user. Returns what goes on to the server; or the result of sending, if nothing does now. */
  onSend?(outgoing: Outgoing): Outgoing | Sent;
  /** The result of sending a message that went on from here. The message is as the server gets it. */
  onSent?(message: Message, result: Sent): void;
  /** Another backend has stopped here. Returns where the server's side continues; see `onState`. */
  onResume?(resume: Resume): Resume;
  /** As in `BackendEvents`. Returns what goes on to the user. */
  onMessages?(messages: readonly Message[], relatedRequests: RequestIds | undefined): readonly Message[];
  /** As in `BackendEvents`. */
  onNoise?(text: Buffer, more: number | undefined): void;
  onUnanswered?(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void;
  onState?(state: string): void;
  onEnd?(end: BackendEnd): void;
  /** The user learns the end now, or there is none who could. Called exactly once, also after a fault. */
  onOver?(end: BackendEnd): void;

  /** Called by the link. */
  attach(link: Link, index: number): void {
    this.#link = link;
    this.#index = index;
  }

  get pid(): number | undefined {
    return this.#link?.pid;
  }

  /** Ends the backend, as its user could. */
  close(): Promise<void> {
    return this.#own.close();
  }

  protected passSend(message: Message, headers?: ForwardedHeaders): Sent {
    return this.#own.sendFrom(this.#index - 1, message, headers);
  }

  protected passMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.#own.messagesFrom(this.#index + 1, messages, relatedRequests);
  }

  protected passNoise(text: Buffer, more?: number): void {
    this.#own.noiseFrom(this.#index + 1, text, more);
  }

  protected passUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.#own.unansweredFrom(this.#index + 1, ids, reason, isFinal);
  }

  protected passState(state: string): void {
    this.#own.stateFrom(this.#index + 1, state);
  }

  protected passEnd(end: BackendEnd): void {
    this.#own.endFrom(this.#index + 1, end);
  }

  /** Stops reading from the server until `release`, whatever its user wants. */
  protected hold(): void {
    this.#own.hold();
  }

  protected release(): void {
    this.#own.release();
  }

  get #own(): Link {
    if (this.#link === undefined) throw new Error('the interceptor is not part of a link');
    return this.#link;
  }
}

/** Creates the interceptor of one backend; undefined for a backend that needs none. */
export type CreateInterceptor = (opening: OpenOptions | undefined) => Interceptor | undefined;

/** The interceptors of the backends of a server. */
export type InterceptorsOf = (server: string) => readonly CreateInterceptor[];

/**
 * Opens backends with interceptors, and keeps faults where they happen. What an interceptor, the listener of the events or
 * the backend itself throws is reported. It ends that one backend as `failed`, once like any end.
 * @param interceptors the first one is nearest to the server
 */
export const linkBackends =
  (open: OpenBackend, interceptors: readonly CreateInterceptor[]): OpenBackend =>
  (events, options) =>
    new Link(open, interceptors, events, options);

class Link implements Backend, BackendEvents {
  readonly #user: BackendEvents;
  readonly #interceptors: readonly Interceptor[];
  /** Undefined if it could not be opened. */
  readonly #backend: Backend | undefined;
  #holds = 0;
  #isPaused = false;
  #isClosed = false;
  #isFaulty = false;
  /** True once the server has ended, and once the user knows it. */
  #hasEnded = false;
  #isOver = false;

  constructor(
    open: OpenBackend,
    interceptors: readonly CreateInterceptor[],
    user: BackendEvents,
    options: OpenOptions | undefined,
  ) {
    this.#user = user;
    this.#interceptors = interceptors.map((create) => create(options)).filter((each) => each !== undefined);
    for (const [index, interceptor] of this.#interceptors.entries()) interceptor.attach(this, index);
    try {
      this.#backend = open(this, this.#resumed(options));
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** The options as the backend gets them: an interceptor may have put its own state around that of the backend. */
  #resumed(options: OpenOptions | undefined): OpenOptions | undefined {
    if (options?.resume === undefined) return options;
    const pass = (resume: Resume, interceptor: Interceptor): Resume => interceptor.onResume?.(resume) ?? resume;
    return { ...options, resume: this.#interceptors.reduceRight(pass, options.resume) };
  }

  get pid(): number | undefined {
    return this.#backend?.pid;
  }

  send(message: Message, headers?: ForwardedHeaders): Sent {
    if (this.#isFaulty) return 'ended';
    try {
      return this.sendFrom(this.#interceptors.length - 1, message, headers);
    } catch (cause) {
      this.#fail(cause);
      return 'ended';
    }
  }

  pause(): void {
    this.#isPaused = true;
    this.#read(false);
  }

  resume(): void {
    this.#isPaused = false;
    this.#read(true);
  }

  async close(how?: CloseOptions): Promise<void> {
    this.#isClosed = true;
    await this.#backend?.close(how);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    try {
      this.messagesFrom(0, messages, relatedRequests);
    } catch (cause) {
      this.#fail(cause);
    }
  }

  onNoise(text: Buffer, more?: number): void {
    this.#guard(() => this.noiseFrom(0, text, more));
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.#guard(() => this.unansweredFrom(0, ids, reason, isFinal));
  }

  onState(state: string): void {
    this.#guard(() => this.stateFrom(0, state));
  }

  onEnd(end: BackendEnd): void {
    this.#hasEnded = true;
    this.#guard(() => this.endFrom(0, end));
  }

  /** Passes a message to the interceptors with this index and lower ones, and to the server. */
  sendFrom(index: number, message: Message, headers: ForwardedHeaders | undefined): Sent {
    let outgoing: Outgoing = { message, headers };
    let result: Sent | undefined;
    let at = index;
    for (; at >= 0; at -= 1) {
      const passed = this.#interceptors[at]?.onSend?.(outgoing) ?? outgoing;
      if (typeof passed === 'string') {
        result = passed;
        break;
      }
      outgoing = passed;
    }
    result ??= this.#backend?.send(outgoing.message, outgoing.headers) ?? 'ended';
    for (at += 1; at <= index; at += 1) this.#interceptors[at]?.onSent?.(outgoing.message, result);
    return result;
  }

  /** Passes messages to the interceptors with this index and higher ones, and to the user. */
  messagesFrom(index: number, messages: readonly Message[], relatedRequests: RequestIds | undefined): void {
    let passing = messages;
    for (let at = index; at < this.#interceptors.length; at += 1) {
      passing = this.#interceptors[at]?.onMessages?.(passing, relatedRequests) ?? passing;
      if (passing.length === 0) return;
    }
    this.#report(() => this.#user.onMessages(passing, relatedRequests));
  }

  noiseFrom(index: number, text: Buffer, more: number | undefined): void {
    const next = this.#next(index, 'onNoise');
    if (next?.onNoise !== undefined) next.onNoise(text, more);
    else this.#report(() => this.#user.onNoise(text, more));
  }

  unansweredFrom(index: number, ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    const next = this.#next(index, 'onUnanswered');
    if (next?.onUnanswered !== undefined) next.onUnanswered(ids, reason, isFinal);
    else this.#report(() => this.#user.onUnanswered(ids, reason, isFinal));
  }

  stateFrom(index: number, state: string): void {
    const next = this.#next(index, 'onState');
    if (next?.onState !== undefined) next.onState(state);
    else this.#report(() => this.#user.onState?.(state));
  }

  endFrom(index: number, end: BackendEnd): void {
    const next = this.#next(index, 'onEnd');
    if (next?.onEnd !== undefined) next.onEnd(end);
    else if (!this.#isFaulty) this.#end(end);
  }

  hold(): void {
    this.#holds += 1;
    this.#read(false);
  }

  release(): void {
    this.#holds -= 1;
    if (!this.#isPaused && !this.#hasEnded && !this.#isClosed) this.#read(true);
  }

  #read(isWanted: boolean): void {
    if (isWanted && this.#holds > 0) return;
    this.#guard(() => (isWanted ? this.#backend?.resume() : this.#backend?.pause()));
  }

  #next(index: number, hook: 'onNoise' | 'onUnanswered' | 'onState' | 'onEnd'): Interceptor | undefined {
    for (let at = index; at < this.#interceptors.length; at += 1)
      if (this.#interceptors[at]?.[hook] !== undefined) return this.#interceptors[at];
    return undefined;
  }

  /** Reports something to the user. Interceptors report late, too: nothing follows a close, a fault or the end. */
  #report(act: () => void): void {
    if (!this.#isClosed && !this.#isFaulty && !this.#isOver) this.#guard(act);
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (cause) {
      this.#fail(cause);
    }
  }

  #fail(cause: unknown): void {
    if (!this.#isFaulty) {
      this.#isFaulty = true;
      // Outside of any call into the backend, and after the opener has returned it.
      queueMicrotask(() => {
        detach('backend', this.close());
        this.#end({ ...endedByFault, cause });
      });
    }
    reportFault('backend', cause);
  }

  #end(end: BackendEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const interceptor of this.#interceptors) contain('backend', () => interceptor.onOver?.(end));
    contain('backend', () => this.#user.onEnd(end));
  }
}

/** As `linkBackends`, for backends that have links already: nothing is added where nobody looks. */
export const linkIfAny = (open: OpenBackend, interceptors: readonly CreateInterceptor[]): OpenBackend =>
  interceptors.length === 0 ? open : linkBackends(open, interceptors);
