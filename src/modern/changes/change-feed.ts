import type { ModernCallAnswer } from '../../call/modern-answer.ts';
import type { Reason } from '../../protocol/faults.ts';
import { errorCodeIn } from '../../protocol/json/splice.ts';
import { withoutMember } from '../../protocol/message/edit-members.ts';
import { type Message, memberValue, readGatewayMessage } from '../../protocol/message/message.ts';
import { missedChanges } from '../../protocol/modern/missed-changes.ts';
import { subscriptionIdKey } from '../../protocol/modern/renumber.ts';
import { maxSubscriptions, readFilter, type SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import { contain } from '../../util/boundary.ts';
import { RepeatedChanges } from './repeated-changes.ts';

/** How the wish to hear of a resource ended: the server tells of it, or it said why not, or nothing came of the question. */
export type SubscribeOutcome = 'subscribed' | { readonly error: Message } | { readonly reason: Reason };

/** What a feed needs of its listener. */
export interface ChangeFeedOptions {
  /** Asks the server, under any id. Returns what to call when the subscription is not wanted any more. */
  listen(filter: SubscriptionFilter, answer: ModernCallAnswer): () => void;
  /** Something has changed: a notification as the legacy era has it. False if it could not be passed on. */
  onChange(notification: Buffer): boolean;
  /**
   * What the server says on one subscription can arrive after what it said later on another one: each has a connection of its
   * own. Then a subscription that was replaced is heard for a while longer, and a change of that while may be told twice, however many there are.
   */
  readonly isUnordered: boolean;
}

/** How long a subscription that was replaced is heard where the two are not in order. */
const lingerMs = 1_000;

/** A subscription that the server ended, or refused without being asked for a resource, is opened again after this. */
const firstPauseMs = 1_000;
const maxPauseMs = 60_000;

interface Wish {
  readonly uri: string;
  settle(outcome: SubscribeOutcome): void;
}

/** A subscription at the server. */
interface Listen {
  readonly filter: SubscriptionFilter;
  /** Who asked for resources that are in this filter for the first time. */
  readonly wishes: readonly Wish[];
  cancel: () => void;
}

const acknowledged = 'notifications/subscriptions/acknowledged';
const noSuchMethod = -32601;

/**
 * What one listener whose wishes change hears of a modern server, by one subscription (2026-07-28,
 * basic/patterns/subscriptions): a session of the legacy era, or the instances that share it. What a subscription listens to cannot be changed, so another one is opened beside it, and takes its place once it is acknowledged:
 * there is no moment without.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #changes: RepeatedChanges<Listen>;
  #lists: SubscriptionFilter = {};
  readonly #uris = new Set<string>();
  #wishes: Wish[] = [];
  #current: Listen | undefined;
  /** Those that it replaced and that are still heard, with what ends that. */
  readonly #lingering = new Map<Listen, NodeJS.Timeout>();
  /** The resources that the current one tells of. */
  #agreed: ReadonlySet<unknown> = new Set();
  #opening: Listen | undefined;
  /** What is wanted is not what was asked for last. */
  #isDue = false;
  #settling: (() => void)[] = [];
  /** Changes were not told for a while: the next subscription begins with all of them. */
  #hasMissed = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#changes = new RepeatedChanges(
      (text, listen) => this.#isUnsubscribed(listen, readGatewayMessage(text)) || options.onChange(text),
    );
  }

  /** Listens to changes of these lists from now on. */
  openLists(lists: SubscriptionFilter): void {
    this.#lists = lists;
    this.#updateSoon();
  }

  /** Listens to changes of a resource; `settle` is called when the server has agreed to tell of them, or not. */
  subscribe(uri: string, settle: (outcome: SubscribeOutcome) => void): void {
    const isWanted = this.#uris.has(uri);
    if (isWanted && this.#opening === undefined && this.#agreed.has(uri)) return settle('subscribed');
    if (!isWanted && this.#uris.size >= maxSubscriptions) return settle({ reason: 'too_many_subscriptions' });
    this.#uris.add(uri);
    this.#wishes.push({ uri, settle });
    this.#updateSoon();
  }

  unsubscribe(uri: string): void {
    if (this.#uris.delete(uri)) this.#updateSoon();
  }

  /** Resolves when the server has answered what was asked for last, whichever way; at once if it has. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settling.push(resolve);
      this.#settle();
    });
  }

  #settle(): void {
    if (!this.#isClosed && (this.#isDue || this.#opening !== undefined)) return;
    for (const settled of this.#settling.splice(0)) settled();
  }

  close(): void {
    this.#isClosed = true;
    this.#settle();
    this.#changes.close();
    clearTimeout(this.#timer);
    for (const timer of this.#lingering.values()) clearTimeout(timer);
    for (const listen of [this.#current, this.#opening, ...this.#lingering.keys()]) listen?.cancel();
  }

  /** What is wanted has changed: what else comes in this moment is asked for together with it. */
  #updateSoon(): void {
    this.#isDue = true;
    queueMicrotask(() => contain('shared_process', () => this.flush()));
  }

  #update(): void {
    this.#isDue = true;
    this.flush();
  }

  /** Asks for what is wanted now, unless the server has yet to answer an earlier question: then right after that. */
  flush(): void {
    if (this.#isClosed || !this.#isDue || this.#opening !== undefined) return;
    this.#isDue = false;
    clearTimeout(this.#timer);
    const wishes = this.#wishes;
    this.#wishes = [];
    const filter = { ...this.#lists, ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }) };
    if (Object.keys(filter).length === 0) {
      this.#replace(undefined, new Set());
      for (const { settle } of wishes) settle('subscribed'); // and unsubscribed since
      return this.#settle();
    }
    const listen: Listen = { filter, wishes, cancel: () => undefined };
    this.#opening = listen;
    const cancel = this.#options.listen(filter, {
      message: (text) => this.#take(listen, readGatewayMessage(text)),
      response: (text) => this.#ended(listen, readGatewayMessage(text)),
      fault: (reason) => this.#failed(listen, { reason }),
    });
    listen.cancel = cancel;
  }

  #replace(listen: Listen | undefined, agreed: ReadonlySet<unknown>): void {
    const replaced = this.#current;
    this.#current = listen;
    this.#agreed = agreed;
    if (replaced === undefined || !this.#options.isUnordered) return replaced?.cancel();
    const leave = (): void => {
      this.#lingering.delete(replaced);
      replaced.cancel();
    };
    this.#lingering.set(replaced, setTimeout(leave, lingerMs).unref());
  }

  #take(listen: Listen, notification: Message): boolean {
    if (notification.method === acknowledged) {
      if (listen === this.#opening) this.#acknowledged(listen, notification);
      return true;
    }
    // What still comes of one that was replaced, its successor has told.
    const isHeard = listen === this.#current || this.#lingering.has(listen);
    if (!isHeard) return true;
    return this.#changes.take(asLegacyChange(notification.text), listen, this.#lingering.size > 0);
  }

  /** The server has not heard yet that the client does not want to know of this resource any more. */
  #isUnsubscribed({ filter }: Listen, notification: Message): boolean {
    if (notification.method !== 'notifications/resources/updated') return false;
    const uri = memberValue(notification, 'params', 'uri') as string;
    return filter.resourceSubscriptions?.includes(uri) === true && !this.#uris.has(uri);
  }

  #acknowledged(listen: Listen, notification: Message): void {
    this.#opening = undefined;
    this.#failures = 0;
    const agreed = agreedUris(notification);
    this.#replace(listen, agreed);
    for (const { uri, settle } of listen.wishes) {
      if (agreed.has(uri)) settle('subscribed');
      else {
        this.#uris.delete(uri);
        settle({ reason: 'subscription_refused' });
      }
    }
    if (this.#hasMissed)
      for (const change of missedChanges(notification, '0')) this.#options.onChange(asLegacyChange(change));
    this.#hasMissed = false;
    this.flush();
    this.#settle();
  }

  /** The server answered: with an error in place of the acknowledgement, or with the end of the subscription. */
  #ended(listen: Listen, response: Message): void {
    if (listen === this.#opening) return this.#failed(listen, { error: response });
    if (listen !== this.#current) return;
    this.#current = undefined;
    this.#hasMissed = true;
    this.#updateLater();
  }

  #failed(listen: Listen, why: Exclude<SubscribeOutcome, 'subscribed'>): void {
    if (listen === this.#current) {
      this.#current = undefined;
      this.#hasMissed = true;
      return this.#updateLater();
    }
    if (listen !== this.#opening) return;
    this.#opening = undefined;
    for (const { uri, settle } of listen.wishes) {
      this.#uris.delete(uri);
      settle(why);
    }
    // Without them the server may agree, or the subscription that there is may still be right.
    if (this.#isDue || (listen.wishes.length > 0 && this.#current === undefined)) this.#update();
    else if (this.#current === undefined && !isUnknownMethod(why)) this.#updateLater();
    this.#settle();
  }

  #updateLater(): void {
    if (this.#isClosed) return;
    const pauseMs = Math.min(firstPauseMs * 2 ** this.#failures, maxPauseMs);
    this.#failures += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => contain('shared_process', () => this.#update()), pauseMs).unref();
  }
}

/** The resources that the server says it will tell of. */
function agreedUris(acknowledgement: Message): ReadonlySet<unknown> {
  return new Set(readFilter(acknowledgement).resourceSubscriptions);
}

const isUnknownMethod = (why: Exclude<SubscribeOutcome, 'subscribed'>): boolean => {
  if (!('error' in why)) return false;
  return errorCodeIn(why.error.text) === noSuchMethod;
};

/** A notification of a subscription without what says of which: a legacy client has none. */
function asLegacyChange(text: Buffer): Buffer {
  const rest = withoutMember(text, ['params', '_meta', subscriptionIdKey]);
  const { memberRanges: places } = readGatewayMessage(rest);
  return places.meta?.keys.length === 0 ? withoutMember(rest, ['params', '_meta']) : rest;
}
