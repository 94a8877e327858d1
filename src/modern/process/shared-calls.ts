import type { CallAnswer } from '../../call/call-answer.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { TaskRequester } from './task-owners.ts';

/** The origin of a request. */
export interface RequestOrigin {
  /** The forwarded headers of the client's request. */
  readonly headers?: ForwardedHeaders | undefined;
  /** The sender; absent where users are not distinguished. */
  readonly requester?: TaskRequester | undefined;
  /** True for a request of a legacy session, which is served until it ends. */
  readonly isOfSession?: boolean;
  /** True if no client waits: a health probe, or a subscription on behalf of other instances. */
  readonly isOfProbe?: boolean;
}

/**
 * Cancels a request whose client no longer waits.
 * @param reason the client's reason, for the server
 */
export type CancelRequest = (reason?: string) => void;

/** A request in flight at a shared server. */
export interface SharedCall {
  /** The request's id and progress token at the server. Never used twice. */
  readonly number: number;
  readonly method: string;
  /** The id and the progress token of the client's request, and their JSON texts; see `RenumberedRequest`. */
  readonly clientId: RequestId;
  readonly idText: string;
  readonly clientToken: RequestId | undefined;
  readonly tokenText: string | undefined;
  /** The lowest level of log messages that the client wants; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined;
  /** True for a subscription: it stays open, and is sent again to a process that replaces its own. */
  readonly isListen: boolean;
  readonly answer: CallAnswer;
  /** The client's headers for the server; they go with this request only. */
  readonly headers: ForwardedHeaders;
  /**
   * The owner of a subscription, or of a request that may begin a task; undefined where users are not distinguished.
   */
  readonly requester: TaskRequester | undefined;
  /** See `RequestOrigin`. */
  readonly isOfSession: boolean;
  readonly isOfProbe: boolean;
  /** The request as the server gets it, while it may still have to be sent. */
  request: Message | undefined;
  /** True if the current process has the request. */
  isSent: boolean;
  /** True for a subscription whose client has the acknowledgement. */
  isAcknowledged: boolean;
  /** True if a process or connection that had the request was lost. */
  isRerun: boolean;
  /** The newest progress value that the client got. */
  lastProgress: number;
  /** When the request came or last reported progress, on the monotonic clock in milliseconds. */
  activeAt: number;
  readonly startedAt: number;
}

/** The members of a call that are known before it is sent. */
type SharedCallInit = Pick<
  SharedCall,
  | 'number'
  | 'method'
  | 'clientId'
  | 'idText'
  | 'clientToken'
  | 'tokenText'
  | 'logLevel'
  | 'isListen'
  | 'answer'
  | 'headers'
  | 'requester'
  | 'isOfSession'
  | 'isOfProbe'
  | 'request'
>;

/**
 * Creates a call that is not sent yet. It is written member by member, since copying an object for each request costs
 * more.
 */
export function createSharedCall(init: SharedCallInit): SharedCall {
  const now = performance.now();
  return {
    number: init.number,
    method: init.method,
    clientId: init.clientId,
    idText: init.idText,
    clientToken: init.clientToken,
    tokenText: init.tokenText,
    logLevel: init.logLevel,
    isListen: init.isListen,
    answer: init.answer,
    headers: init.headers,
    requester: init.requester,
    isOfSession: init.isOfSession,
    isOfProbe: init.isOfProbe,
    request: init.request,
    isSent: false,
    isAcknowledged: false,
    isRerun: false,
    lastProgress: Number.NEGATIVE_INFINITY,
    activeAt: now,
    startedAt: now,
  };
}

/** A cancelled call. */
interface Retired {
  readonly call: SharedCall;
  /** The number of the newest call at the time of the cancellation. */
  readonly newest: number;
  readonly timer: NodeJS.Timeout;
}

/** The requests in flight at one server, in the order in which they came. */
export class SharedCalls {
  readonly #byNumber = new Map<number, SharedCall>();
  /** The calls that a log message can belong to, including cancelled ones. */
  readonly #loggable = new Set<SharedCall>();
  /** All calls except subscriptions. */
  readonly #requests = new Set<SharedCall>();
  /** Cancelled calls that the server may still send messages for, by number. */
  readonly #retired = new Map<number, Retired>();
  #newest = 0;
  /**
   * Until `untilMs` a message that names no request may belong to a cancelled call. `newest`: the newest call at the
   * cancellation.
   */
  #doubt: { readonly newest: number; readonly untilMs: number } | undefined;
  #heldBytes = 0;
  #emptyWaiters: (() => void)[] = [];

  /** True if there are calls and no client waits for any of them. */
  get areAllProbes(): boolean {
    const all = this.all();
    return all.length > 0 && all.every(({ isOfProbe }) => isOfProbe);
  }

  get size(): number {
    return this.#byNumber.size;
  }

  /** The bytes of requests that may still have to be sent. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  add(call: SharedCall): void {
    this.#byNumber.set(call.number, call);
    this.#newest = call.number;
    if (!call.isListen) this.#requests.add(call);
    if (call.logLevel !== undefined && !call.isListen) this.#loggable.add(call);
    this.#heldBytes += call.request?.text.length ?? 0;
  }

  get(number: unknown): SharedCall | undefined {
    return this.#byNumber.get(number as number);
  }

  /** True if the call is still in flight. */
  has(call: SharedCall): boolean {
    return this.#byNumber.get(call.number) === call;
  }

  /** Removes a call. Later messages for it are dropped. */
  remove(call: SharedCall): void {
    if (!this.#byNumber.delete(call.number)) return;
    this.#loggable.delete(call);
    this.#requests.delete(call);
    this.forgetRequest(call);
    if (this.#byNumber.size === 0) for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  /**
   * Removes a cancelled call. The server learns of the cancellation later: until then its log messages may belong to
   * this call, and must not reach the client of another call.
   * @param graceMs how long that is assumed, unless an answer shows earlier that the server knows
   */
  retire(call: SharedCall, graceMs: number): void {
    const mayLog = call.isSent && this.#loggable.has(call);
    const maySpeak = call.isSent && !call.isListen;
    if (maySpeak) this.#doubt = { newest: this.#newest, untilMs: performance.now() + graceMs };
    this.remove(call);
    if (!mayLog) return;
    this.#loggable.add(call);
    const timer = setTimeout(() => this.#dropRetiredCall(call.number), graceMs);
    this.#retired.set(call.number, { call, newest: this.#newest, timer });
  }

  /**
   * The server has answered a request. No more messages come for that request, nor for calls that were cancelled before
   * it was sent: the server reads in order.
   */
  noteAnswered(number: unknown): void {
    if (this.#doubt !== undefined && this.#doubt.newest < (number as number)) this.#doubt = undefined;
    for (const { call, newest } of [...this.#retired.values()]) {
      if (call.number === number || newest < (number as number)) this.#dropRetiredCall(call.number);
    }
  }

  /** The process has ended: no message for a cancelled call can come any more. */
  dropRetired(): void {
    this.#doubt = undefined;
    for (const number of [...this.#retired.keys()]) this.#dropRetiredCall(number);
  }

  #dropRetiredCall(number: number): void {
    const retired = this.#retired.get(number);
    if (retired === undefined) return;
    clearTimeout(retired.timer);
    this.#retired.delete(number);
    this.#loggable.delete(retired.call);
  }

  /** Drops the request of a call that will not be sent again. */
  forgetRequest(call: SharedCall): void {
    this.#heldBytes -= call.request?.text.length ?? 0;
    call.request = undefined;
  }

  all(): SharedCall[] {
    return [...this.#byNumber.values()];
  }

  /** The only request that a log message can belong to: no other request wants log messages. */
  get onlyLoggable(): SharedCall | undefined {
    const [first] = this.#loggable;
    return this.#loggable.size === 1 && first !== undefined && this.has(first) ? first : undefined;
  }

  /** The only request, apart from subscriptions, that the server can be working on. */
  get onlyRequest(): SharedCall | undefined {
    const [first] = this.#requests;
    const isInDoubt = this.#doubt !== undefined && performance.now() < this.#doubt.untilMs;
    return this.#requests.size === 1 && first?.isSent === true && !isInDoubt ? first : undefined;
  }

  /** Resolves when no call is in flight. */
  whenEmpty(): Promise<void> {
    if (this.#byNumber.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#emptyWaiters.push(resolve));
  }
}
