import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import { errorCodeIn } from '../../../../core/protocol/json.ts';
import { maxSubscriptions } from '../../../../core/protocol/kept-uris.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { type Message, memberValue } from '../../../../core/protocol/message/message.ts';
import { missedChanges } from '../../../../core/protocol/modern/missed-changes.ts';
import { subscriptionIdKey } from '../../../../core/protocol/modern/renumber.ts';
import {
  listChanges,
  readFilter,
  type SubscriptionFilter,
} from '../../../../core/protocol/modern/subscription-filter.ts';
import { methodNotFound } from '../../../../core/protocol/revisions.ts';
import { contain } from '../../../../core/util/boundary.ts';
import { backoff } from '../../../../core/util/timing/backoff.ts';
import { RepeatedChanges } from './repeated-changes.ts';

/** The outcome of subscribing to a resource: success, the server's error, or the reason why no answer came. */
export type SubscribeOutcome = 'subscribed' | { readonly error: Message } | { readonly reason: Reason };

export interface ChangeFeedOptions {
  /** Opens a subscription at the server, under any id. Returns the function that cancels it. */
  listen(filter: SubscriptionFilter, answer: CallAnswer): () => void;
  /** Reports a change as a notification of the legacy era. Returns false if it could not be passed on. */
  onChange(notification: Message): boolean;
  /**
   * True where each subscription has a connection of its own, so that messages of two subscriptions can arrive out of
   * order. A replaced subscription is then read for a while longer, and a change of that time may be reported twice.
   */
  readonly isUnordered: boolean;
}

/** How long a replaced subscription is still read where subscriptions are unordered. */
const lingerMs = 1_000;

/**
 * The pause before a subscription is opened again that the server ended, or refused although it asked for no new
 * resource. The pause doubles up to a limit.
 */
const pauseAfter = backoff({ firstMs: 1_000, maxMs: 60_000 });

interface PendingSubscribe {
  readonly uri: string;
  settle(outcome: SubscribeOutcome): void;
}

/** A subscription at the server. */
interface ServerSubscription {
  readonly filter: SubscriptionFilter;
  /** The pending requests for resources that are in this filter for the first time. */
  readonly pending: readonly PendingSubscribe[];
  cancel: () => void;
}

const acknowledged = 'notifications/subscriptions/acknowledged';
/**
 * Keeps one changing subscription at a modern server (2026-07-28, basic/patterns/subscriptions), for a legacy session
 * or for the instances that share a process. The filter of an open subscription cannot change. So a second subscription
 * is opened beside it and replaces it once the second is acknowledged: no change falls between the two.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #changes: RepeatedChanges<ServerSubscription>;
  #lists: SubscriptionFilter = {};
  readonly #uris = new Set<string>();
  #pending: PendingSubscribe[] = [];
  #current: ServerSubscription | undefined;
  /** Replaced subscriptions that are still read, with the timers that end them. */
  readonly #lingering = new Map<ServerSubscription, NodeJS.Timeout>();
  /** The resources that the current subscription covers. */
  #agreedUris: ReadonlySet<unknown> = new Set();
  #opening: ServerSubscription | undefined;
  /** True if the wanted filter differs from the filter that was sent last. */
  #isDue = false;
  #settledWaiters: (() => void)[] = [];
  /** True if changes may have been missed: the next subscription begins by reporting all of them. */
  #hasMissed = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#changes = new RepeatedChanges(
      (change, listen) => this.#isUnsubscribed(listen, change) || options.onChange(change),
    );
  }

  /** Subscribes to changes of these lists from now on. */
  openLists(lists: SubscriptionFilter): void {
    this.#lists = lists;
    this.#updateSoon();
  }

  /** Subscribes to a resource; `settle` is called when the server has agreed or not. */
  subscribe(uri: string, settle: (outcome: SubscribeOutcome) => void): void {
    const isWanted = this.#uris.has(uri);
    if (isWanted && this.#opening === undefined && this.#agreedUris.has(uri)) return settle('subscribed');
    if (!isWanted && this.#uris.size >= maxSubscriptions) return settle({ reason: 'too_many_subscriptions' });
    this.#uris.add(uri);
    this.#pending.push({ uri, settle });
    this.#updateSoon();
  }

  unsubscribe(uri: string): void {
    if (this.#uris.delete(uri)) this.#updateSoon();
  }

  /**
   * Subscribes to all that a filter asks for, and to nothing else. What the server refuses is asked for again with the
   * next filter.
   * @returns false if the filter has more resources than one subscription may have: the others are left out (P8)
   */
  setFilter({ resourceSubscriptions: uris = [], ...lists }: SubscriptionFilter): boolean {
    const wanted = new Set(uris.slice(0, maxSubscriptions));
    for (const uri of this.#uris) if (!wanted.has(uri)) this.#uris.delete(uri);
    for (const uri of wanted) if (!this.#uris.has(uri)) this.subscribe(uri, () => undefined);
    this.#lists = lists;
    this.#update();
    return wanted.size === uris.length;
  }

  /** Resolves when the server has answered the latest subscription, whichever way; at once if it has. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settledWaiters.push(resolve);
      this.#settle();
    });
  }

  #settle(): void {
    if (!this.#isClosed && (this.#isDue || this.#opening !== undefined)) return;
    for (const settled of this.#settledWaiters.splice(0)) settled();
  }

  close(): void {
    this.#isClosed = true;
    this.#settle();
    this.#changes.close();
    clearTimeout(this.#timer);
    for (const timer of this.#lingering.values()) clearTimeout(timer);
    for (const listen of [this.#current, this.#opening, ...this.#lingering.keys()]) listen?.cancel();
  }

  /** Schedules one subscription for all changes of the filter that are made in this turn of the event loop. */
  #updateSoon(): void {
    this.#isDue = true;
    queueMicrotask(() => contain('shared_process', () => this.flush()));
  }

  #update(): void {
    this.#isDue = true;
    this.flush();
  }

  /**
   * Opens a subscription for the wanted filter. If the server has yet to answer an earlier one, this happens right
   * after that.
   */
  flush(): void {
    if (this.#isClosed || !this.#isDue || this.#opening !== undefined) return;
    this.#isDue = false;
    clearTimeout(this.#timer);
    const pending = this.#pending;
    this.#pending = [];
    const filter = { ...this.#lists, ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }) };
    if (Object.keys(filter).length === 0) {
      this.#replace(undefined, new Set());
      for (const { settle } of pending) settle('subscribed'); // they were unsubscribed meanwhile
      return this.#settle();
    }
    const listen: ServerSubscription = { filter, pending, cancel: () => undefined };
    this.#opening = listen;
    const cancel = this.#options.listen(filter, {
      message: (notification) => this.#handleMessage(listen, notification),
      response: (response) => this.#handleResponse(listen, response),
      fault: (reason) => this.#handleFailure(listen, { reason }),
    });
    listen.cancel = cancel;
  }

  #replace(listen: ServerSubscription | undefined, agreedUris: ReadonlySet<unknown>): void {
    const replaced = this.#current;
    this.#current = listen;
    this.#agreedUris = agreedUris;
    if (replaced === undefined || !this.#options.isUnordered) return replaced?.cancel();
    const endReplaced = (): void => {
      this.#lingering.delete(replaced);
      replaced.cancel();
    };
    this.#lingering.set(replaced, setTimeout(endReplaced, lingerMs).unref());
  }

  #handleMessage(listen: ServerSubscription, notification: Message): boolean {
    if (notification.method === acknowledged) {
      if (listen === this.#opening) this.#handleAcknowledged(listen, notification);
      return true;
    }
    // A replaced subscription reports nothing that its successor has not reported.
    const isRead = listen === this.#current || this.#lingering.has(listen);
    if (!isRead) return true;
    return this.#changes.report(asLegacyChange(notification), listen, this.#lingering.size > 0);
  }

  /** True if the change is of a resource that was unsubscribed, which the server does not know yet. */
  #isUnsubscribed({ filter }: ServerSubscription, notification: Message): boolean {
    if (notification.method !== 'notifications/resources/updated') return false;
    const uri = memberValue(notification, 'params', 'uri') as string;
    return filter.resourceSubscriptions?.includes(uri) === true && !this.#uris.has(uri);
  }

  #handleAcknowledged(listen: ServerSubscription, notification: Message): void {
    this.#opening = undefined;
    this.#failures = 0;
    const agreedUris = readAgreedUris(notification);
    this.#replace(listen, agreedUris);
    for (const { uri, settle } of listen.pending) {
      if (agreedUris.has(uri)) settle('subscribed');
      else {
        this.#uris.delete(uri);
        settle({ reason: 'subscription_refused' });
      }
    }
    if (this.#hasMissed)
      for (const change of missedChanges(readFilter(notification), '0')) this.#options.onChange(asLegacyChange(change));
    this.#hasMissed = false;
    this.flush();
    this.#settle();
  }

  /** Handles the response: an error in place of the acknowledgement, or the end of the subscription. */
  #handleResponse(listen: ServerSubscription, response: Message): void {
    if (listen === this.#opening)
      return this.#handleFailure(listen, response.isError ? { error: response } : { reason: 'subscription_refused' });
    if (listen !== this.#current) return;
    this.#current = undefined;
    this.#hasMissed = true;
    this.#updateLater();
  }

  #handleFailure(listen: ServerSubscription, outcome: Exclude<SubscribeOutcome, 'subscribed'>): void {
    if (listen === this.#current) {
      this.#current = undefined;
      this.#hasMissed = true;
      return this.#updateLater();
    }
    if (listen !== this.#opening) return;
    this.#opening = undefined;
    for (const { uri, settle } of listen.pending) {
      this.#uris.delete(uri);
      settle(outcome);
    }
    // Without the refused resources the server may agree, or the current subscription may still be right.
    const lacksLists = listChanges.some(([flag]) => this.#lists[flag] === true && this.#current?.filter[flag] !== true);
    if (this.#isDue || (listen.pending.length > 0 && this.#current === undefined)) this.#update();
    else if ((this.#current === undefined || lacksLists) && !isUnknownMethod(outcome)) this.#updateLater();
    this.#settle();
  }

  #updateLater(): void {
    if (this.#isClosed) return;
    const pauseMs = pauseAfter(this.#failures);
    this.#failures += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => contain('shared_process', () => this.#update()), pauseMs).unref();
  }
}

/** Returns the resources that the server acknowledges. */
function readAgreedUris(acknowledgement: Message): ReadonlySet<unknown> {
  return new Set(readFilter(acknowledgement).resourceSubscriptions);
}

const isUnknownMethod = (outcome: Exclude<SubscribeOutcome, 'subscribed'>): boolean => {
  if (!('error' in outcome)) return false;
  return errorCodeIn(outcome.error.text) === methodNotFound;
};

/** Returns a notification without its subscription id, which the legacy era does not have. */
function asLegacyChange(notification: Message): Message {
  const { text, memberRanges } = notification;
  const hasMoreMeta = memberRanges.meta?.keys.some((key) => key !== subscriptionIdKey) ?? true;
  const path = hasMoreMeta ? ['params', '_meta', subscriptionIdKey] : ['params', '_meta'];
  return changedMessage(notification, withoutMember(text, path), {});
}
