import { type BookedCall, CallBook } from '../../backend/multiplex/call-book.ts';
import type { CallAnswer } from '../../call/call-answer.ts';
import { type CallTimeLimits, overdueOf, type TimedCall } from '../../call/call-limits.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import { UsersOfProcess } from '../../protocol/principal.ts';
import type { Revision } from '../../protocol/revisions.ts';
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
export interface SharedCall extends BookedCall, TimedCall {
  /** The request's id and progress token at the server: a number that is never used twice. */
  readonly id: number;
  readonly method: string;
  /** The facts about the revision that the client's request names. */
  readonly revision: Revision;
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
  /** The changes that the server has acknowledged for a subscription. */
  filter: SubscriptionFilter;
  /** True if a process or connection that had the request was lost. */
  isRerun: boolean;
  /** The newest progress value that the client got. */
  lastProgress: number;
}

/** A cancelled call. */
interface Retired {
  readonly call: SharedCall;
  /** The number of the newest call at the time of the cancellation. */
  readonly newest: number;
  readonly timer: NodeJS.Timeout;
}

/** The requests in flight at one server. */
export class SharedCalls extends CallBook<SharedCall> {
  /** The users whose requests the server had. */
  readonly users = new UsersOfProcess();
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

  /** True if there are calls and no client waits for any of them. */
  get areAllProbes(): boolean {
    const all = this.all();
    return all.length > 0 && all.every(({ isOfProbe }) => isOfProbe);
  }

  override add(call: SharedCall): void {
    super.add(call);
    this.#newest = call.id;
    if (!call.isListen) this.#requests.add(call);
    if (call.logLevel !== undefined && !call.isListen) this.#loggable.add(call);
  }

  override take(id: RequestId | null | undefined): SharedCall | undefined {
    const call = super.take(id);
    if (call === undefined) return undefined;
    this.#loggable.delete(call);
    this.#requests.delete(call);
    call.request = undefined;
    return call;
  }

  /** The calls that were silent or in flight for too long. A subscription stays open. */
  overdue(limits: CallTimeLimits): SharedCall[] {
    return overdueOf(this.values(), limits).filter(({ isListen }) => !isListen);
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
    this.take(call.id);
    if (!mayLog) return;
    this.#loggable.add(call);
    const timer = setTimeout(() => this.#dropRetiredCall(call.id), graceMs);
    this.#retired.set(call.id, { call, newest: this.#newest, timer });
  }

  /**
   * The server has answered a request. No more messages come for that request, nor for calls that were cancelled before
   * it was sent: the server reads in order.
   */
  noteAnswered(number: unknown): void {
    if (this.#doubt !== undefined && this.#doubt.newest < (number as number)) this.#doubt = undefined;
    for (const { call, newest } of [...this.#retired.values()]) {
      if (call.id === number || newest < (number as number)) this.#dropRetiredCall(call.id);
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

  /**
   * The only request that a log message can belong to: no other request wants log messages. With several users, a log
   * message may be a late one for another user.
   */
  get onlyLoggable(): SharedCall | undefined {
    if (this.users.areSeveral) return undefined;
    const [first] = this.#loggable;
    return this.#loggable.size === 1 && first !== undefined && this.holds(first) ? first : undefined;
  }

  /** The only request, apart from subscriptions, that the server can be working on. None with several users, as above. */
  get onlyRequest(): SharedCall | undefined {
    if (this.users.areSeveral) return undefined;
    const [first] = this.#requests;
    const isInDoubt = this.#doubt !== undefined && performance.now() < this.#doubt.untilMs;
    return this.#requests.size === 1 && first?.isSent === true && !isInDoubt ? first : undefined;
  }
}
