import type { RequestIds } from '../../../../core/backend/backend.ts';
import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import { type BookedCall, CallBook } from '../../../../core/multiplex/call-book.ts';
import { type CallTimeLimits, overdueOf, type TimedCall } from '../../../../core/multiplex/call-limits.ts';
import { Route, routed } from '../../../../core/multiplex/route.ts';
import { Subscribers } from '../../../../core/multiplex/subscribers.ts';
import type { Reason, RequestId } from '../../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import type { LogLevel } from '../../../../core/protocol/modern/log-levels.ts';
import type { RenumberedIds } from '../../../../core/protocol/modern/renumber.ts';
import {
  keyOfChange,
  keysOfFilter,
  type SubscriptionFilter,
} from '../../../../core/protocol/modern/subscription-filter.ts';
import type { UsersOfProcess } from '../../../../core/protocol/principal.ts';
import type { Revision } from '../../../../core/protocol/revisions.ts';
import { within } from '../../../../core/util/timing/within.ts';
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

/**
 * Sends a request of the gateway itself. Resolves with the response, or with the reason why there is none; undefined if
 * none comes in time, and the request is cancelled. Never rejects.
 */
export function askShared(
  send: (answer: CallAnswer) => CancelRequest,
  limitMs: number,
): Promise<Message | Reason | undefined> {
  let cancel: CancelRequest = () => undefined;
  const answered = new Promise<Message | Reason>((resolve) => {
    cancel = send({ message: () => false, response: resolve, fault: resolve });
  });
  return within(answered, limitMs, () => {
    cancel();
    return undefined;
  });
}

/** A request in flight at a shared server. */
export interface SharedCall extends BookedCall, TimedCall, RenumberedIds {
  /** The request's id and progress token at the server: a number that is never used twice. */
  readonly id: number;
  readonly method: string;
  /** The facts about the revision that the client's request names. */
  readonly revision: Revision;
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
}

/** The requests in flight at one server. */
export class SharedCalls extends CallBook<SharedCall> {
  readonly #route: Route<SharedCall>;
  /** The acknowledged subscriptions. */
  readonly #subscribers = new Subscribers<SharedCall>();

  /** @param isOfOneUser see `Route` */
  constructor(isOfOneUser: () => boolean) {
    super();
    this.#route = new Route<SharedCall>(this, ({ answer }) => answer, isOfOneUser);
  }

  /** The users whose requests the server had. */
  get users(): UsersOfProcess {
    return this.#route.users;
  }

  /** The server has acknowledged a subscription: it reports these changes. */
  acknowledge(call: SharedCall, filter: SubscriptionFilter): void {
    call.isAcknowledged = true;
    for (const key of keysOfFilter(filter)) this.#subscribers.add(call, key);
  }

  /** The acknowledged subscriptions that ask for changes of some kind. */
  get subscriptions(): Iterable<SharedCall> {
    return this.#subscribers.all;
  }

  /** The acknowledged subscriptions to this change. */
  subscribersTo(change: Message): ReadonlySet<SharedCall> {
    return this.#subscribers.of(keyOfChange(change) ?? '');
  }

  override take(id: RequestId | null | undefined): SharedCall | undefined {
    const call = super.take(id);
    if (call?.isAcknowledged === true) this.#subscribers.leave(call);
    return call;
  }

  /** True if there are calls and no client waits for any of them. */
  get areAllProbes(): boolean {
    const all = this.all();
    return all.length > 0 && all.every(({ isOfProbe }) => isOfProbe);
  }

  /** The calls that were silent or in flight for too long. A subscription stays open. */
  overdue(limits: CallTimeLimits): SharedCall[] {
    return overdueOf(this.values(), limits).filter(({ isListen }) => !isListen);
  }

  /**
   * Removes a cancelled call. The server learns of the cancellation later: until its answer, or for a while, its messages
   * may be about this call, and must not reach the client of another call.
   */
  retire(call: SharedCall, graceMs: number): void {
    if (call.isSent && !call.isListen) this.cancel(call, graceMs);
    else this.take(call.id);
  }

  /** The call of the id that a message names, or of the request beside which it came. */
  named(id: RequestId | undefined, relatedRequests: RequestIds | undefined): SharedCall | 'foreign' | undefined {
    if (this.#route.isForeign(id, relatedRequests)) return 'foreign';
    return id === undefined ? this.#route.beside(relatedRequests) : this.get(id);
  }

  /**
   * The only request that a notification can be about which names none.
   * @param isLog true if it is a log message: requests that want none do not count
   */
  only(isLog: boolean): SharedCall | undefined {
    const mayBe = ({ isListen, logLevel }: SharedCall): boolean => !isListen && !(isLog && logLevel === undefined);
    const call = routed(this.#route.notified(mayBe));
    return call?.isSent === true && this.holds(call) ? call : undefined;
  }
}
