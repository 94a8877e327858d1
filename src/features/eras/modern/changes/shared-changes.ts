import { randomUUID } from 'node:crypto';
import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import { Subscribers } from '../../../../core/multiplex/subscribers.ts';
import { type Message, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import {
  keyOfChange,
  keysOfFilter,
  type SubscriptionFilter,
} from '../../../../core/protocol/modern/subscription-filter.ts';
import { retryWhileUnavailable } from '../../../../core/store/retry-unavailable.ts';
import type { Changes } from '../../../../core/store/shared/shared-data.ts';
import { ifUnavailable } from '../../../../core/store/store-unavailable.ts';
import { contain, detach } from '../../../../core/util/boundary.ts';
import { settlesWithin } from '../../../../core/util/timing/within.ts';
import { ChangeFeed } from './change-feed.ts';
import { ChangeThrottle } from './change-throttle.ts';
import {
  announcedFilter,
  decodeAnnouncement,
  encodeAnnouncement,
  type FilterAnnouncement,
  isEmptyFilter,
  type PeerAnnouncement,
} from './peer-announcements.ts';
import { announceEveryMs, ChangePeers } from './peers.ts';
import { Subscription } from './subscription.ts';

interface SharedChangesOptions {
  readonly changes: Changes;
  /** The server's topic, the same on all instances and different from every other server's. */
  readonly topic: string;
  /** Opens a subscription of the gateway's own at the running process. Returns the function that ends it. */
  listen(filter: SubscriptionFilter, answer: CallAnswer): () => void;
  /** Too much is subscribed to: other instances do not report changes of all of it. */
  onTruncated(): void;
}

/**
 * Gives subscriptions at one instance the changes that the processes of all instances report (2026-07-28,
 * basic/patterns/subscriptions; decision 0022).
 *
 * Each instance announces the filter of its subscribers. Each instance with a process subscribes there for the others
 * and publishes the changes. A subscription is opened once the others have acknowledged its filter, or have had their
 * time. So it gets every change that its client makes after the acknowledgement, at any instance.
 *
 * A store that is away only delays changes (P7). Subscribers that may have missed something are told that anything may
 * have changed.
 */
export class SharedChanges {
  readonly #options: SharedChangesOptions;
  readonly #name = randomUUID();
  readonly #subscribers = new Subscribers<Subscription>();
  readonly #peers = new ChangePeers();
  readonly #throttle: ChangeThrottle;
  readonly #closing = new AbortController();
  /** What the process of this instance reports for the others; undefined without a process. */
  #feed: ChangeFeed | undefined;
  #wasWanted = false;
  #isDraining = false;
  #leaveTopic: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;
  /** What was too much, the last time: the filter of this instance, or that of the others. */
  readonly #truncated = new Set<'own' | 'others'>();
  /** True if a peer's filter came late: something that it wants may have changed before. */
  #isLate = false;
  /** True if the next announcement asks the others to announce themselves. */
  #asksPeers = false;
  /** Only one text of each kind waits for the store at a time (P8). */
  readonly #announceFilter = runLatest(async () => {
    await this.#publish(() => this.#filterAnnouncement());
    await delay(filterPauseMs);
  });
  readonly #acknowledgePeers = runLatest(() => this.#sendAcknowledgements());
  readonly #announceAnyChange = runLatest(() => this.#publish(() => ({ kind: 'any', from: this.#name })));

  constructor(options: SharedChangesOptions) {
    this.#options = options;
    this.#throttle = new ChangeThrottle(options.changes, (cause) => this.#handleUnpublished(cause));
  }

  /** Begins to listen to the others. Before that, the store is not used. */
  join(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => contain('shared_process', () => this.#renew()), announceEveryMs).unref();
    detach('shared_process', this.#joinTopic());
  }

  /**
   * Opens a client's subscription, which gets the changes of all instances.
   * @param open opens the subscription at this instance's process
   * @param waitsForPeers true to open it only after the others have acknowledged its filter
   * @returns the function that ends the subscription
   */
  listen(
    request: Message,
    answer: CallAnswer,
    waitsForPeers: boolean,
    open: (answer: CallAnswer) => () => void,
  ): () => void {
    this.join();
    const subscription = new Subscription(request, answer, () => {
      if (this.#subscribers.leave(subscription).length > 0) this.#handleFilterChange();
    });
    const isNew = keysOfFilter(subscription.filter).map((key) => this.#subscribers.add(subscription, key));
    if (isNew.includes(true)) this.#handleFilterChange();
    let cancel = (): void => undefined;
    const begin = (): void => {
      if (!subscription.isOver) cancel = open(subscription);
    };
    if (waitsForPeers) detach('shared_process', this.#peers.whenAcknowledged(this.#version).then(begin));
    else begin();
    return () => {
      subscription.end();
      cancel();
    };
  }

  /** A process is ready and was sent no request yet: the subscription for the others is its first request. */
  processReady(): void {
    if (this.#isDraining) return;
    this.#feed = new ChangeFeed({
      listen: this.#options.listen,
      onChange: ({ text }) => {
        this.#throttle.notify(this.#options.topic, encodeAnnouncement({ kind: 'change', from: this.#name, text }));
        return true;
      },
      isUnordered: false,
    });
    this.#subscribeForOthers();
    this.#announceNow();
  }

  /** The process has ended, perhaps before it could report some changes. */
  processLost(): void {
    const isWanted = this.#closeFeed();
    if (isWanted) this.#announceAnyChange();
    this.#announceSoon();
  }

  /**
   * The process is about to end, so others need not wait for it. Remaining subscriptions here still get the changes of
   * others.
   */
  drain(): void {
    this.#isDraining = true;
    this.#wasWanted = this.#closeFeed();
    this.#announceSoon();
  }

  /** Ends the exchange with the others, after the process has ended. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    this.#leaveTopic?.();
    this.#peers.close();
    if (!this.#wasWanted) return;
    // The last requests of the process may have changed something.
    const { changes, topic } = this.#options;
    const announced = changes
      .publish(topic, encodeAnnouncement({ kind: 'any', from: this.#name }))
      .catch(ifUnavailable(undefined));
    await settlesWithin(announced, closingAnnouncementMs);
  }

  /** Returns true if the process reported changes that other instances want. */
  #closeFeed(): boolean {
    const feed = this.#feed;
    this.#feed = undefined;
    feed?.close();
    this.#peers.forgetAcknowledgements();
    return feed !== undefined && !isEmptyFilter(this.#peers.combinedFilter());
  }

  async #joinTopic(): Promise<void> {
    const { changes, topic } = this.#options;
    const listener = {
      onChange: (text: Buffer) => this.#handleAnnouncement(decodeAnnouncement(text)),
      onMissed: () => this.#handleMissed(),
    };
    const { signal } = this.#closing;
    let attempts = 0;
    const subscribe = (): Promise<() => void> => {
      attempts += 1;
      return changes.subscribe(topic, listener);
    };
    const leaveTopic = await retryWhileUnavailable(subscribe, signal).catch(ifUnavailable(undefined));
    if (leaveTopic === undefined || signal.aborted) return leaveTopic?.();
    this.#leaveTopic = leaveTopic;
    this.#announceNow({ asks: true });
    if (attempts === 1) return;
    // Subscriptions that began while the store was away may have missed changes of the others.
    await this.#peers.whenAcknowledged(this.#version);
    this.#notifySubscriptions(undefined);
  }

  #handleAnnouncement(announcement: PeerAnnouncement): void {
    if (announcement.from === this.#name) {
      if (announcement.kind === 'wants' && announcement.asks) this.#asksPeers = false; // the others get it too
    } else if (announcement.kind === 'wants') this.#noteFilter(announcement);
    else if (announcement.kind === 'change') this.#notifySubscriptions(readGatewayMessage(announcement.text));
    else if (announcement.kind === 'any') this.#notifySubscriptions(undefined);
    else if (announcement.of === this.#name) this.#peers.noteAcknowledged(announcement.from, announcement.version);
  }

  #noteFilter(wants: FilterAnnouncement): void {
    const { isKnown, isNew } = this.#peers.noteFilter(wants);
    if (wants.asks) this.#announceNow();
    if (!isNew && !wants.asks) return;
    // An unknown peer that does not ask was there before us: our process ran without reporting changes to it.
    this.#isLate ||= !isKnown && !wants.asks && !isEmptyFilter(wants.filter) && this.#feed !== undefined;
    this.#subscribeForOthers();
  }

  /** Subscribes at the process to what the others want now, and tells them. */
  #subscribeForOthers(): void {
    this.#updateFeed();
    this.#acknowledgePeers();
  }

  #updateFeed(): void {
    const isComplete = this.#feed?.setFilter(this.#peers.combinedFilter());
    if (isComplete !== undefined) this.#noteTruncated('others', !isComplete);
  }

  #noteTruncated(what: 'own' | 'others', isTruncated: boolean): void {
    if (!isTruncated) this.#truncated.delete(what);
    else if (!this.#truncated.has(what)) {
      this.#truncated.add(what);
      this.#options.onTruncated();
    }
  }

  /** Acknowledges the peers' filters once the process has answered. */
  async #sendAcknowledgements(): Promise<void> {
    const feed = this.#feed;
    await feed?.settled();
    if (feed === undefined || feed !== this.#feed) return;
    if (this.#isLate) this.#announceAnyChange();
    this.#isLate = false;
    for (const { from: of, version } of this.#peers.takeUnacknowledged()) {
      await this.#publish(() => ({ kind: 'heeds', from: this.#name, of, version }));
    }
  }

  #notifySubscriptions(change: Message | undefined): void {
    const { all } = this.#subscribers;
    const told = change === undefined ? all : this.#subscribers.of(keyOfChange(change) ?? '');
    for (const subscription of [...told]) subscription.notify(change);
  }

  /** Changes and filters of the others may have been missed. */
  #handleMissed(): void {
    this.#notifySubscriptions(undefined);
    this.#announceNow({ asks: true });
  }

  #handleUnpublished(cause: unknown): void {
    ifUnavailable(undefined)(cause);
    this.#announceAnyChange();
  }

  #renew(): void {
    if (this.#peers.forgetLost()) this.#updateFeed();
    this.#announceSoon();
  }

  /** The filter of this instance's subscribers has changed. */
  #handleFilterChange(): void {
    this.#version += 1;
    this.#announceSoon();
  }

  #announceSoon(): void {
    if (this.#leaveTopic !== undefined) this.#announceFilter();
  }

  /** Announces at once, because the others must know before they open further subscriptions. */
  #announceNow({ asks = false } = {}): void {
    this.#asksPeers ||= asks;
    if (this.#leaveTopic !== undefined)
      detach(
        'shared_process',
        this.#publish(() => this.#filterAnnouncement()),
      );
  }

  #filterAnnouncement(): FilterAnnouncement {
    const { filter, isTruncated } = announcedFilter(this.#subscribers.wanted);
    this.#noteTruncated('own', isTruncated);
    const isRunning = this.#feed !== undefined;
    return { kind: 'wants', from: this.#name, filter, version: this.#version, isRunning, asks: this.#asksPeers };
  }

  /**
   * Publishes an announcement. While the store is away, this waits until it is back or the exchange is closed. The others
   * notice the silence of one that is closed (P7).
   */
  async #publish(announcement: () => PeerAnnouncement): Promise<void> {
    const { changes, topic } = this.#options;
    const { signal } = this.#closing;
    if (signal.aborted) return;
    await retryWhileUnavailable(() => changes.publish(topic, encodeAnnouncement(announcement())), signal).catch(
      ifUnavailable(undefined),
    );
  }
}

/**
 * The pause between announcements of the filter (P8). Clients that come and go must not push other announcements out of
 * the store, nor keep all processes busy with new subscriptions.
 */
const filterPauseMs = 25;

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** How long the gateway's end waits for a store that may be away. */
const closingAnnouncementMs = 250;

/**
 * Wraps a task so that only one run is active at a time. Calls during a run lead to exactly one more run after it.
 * @param run a rejection is reported; the next call runs the task again
 * @returns the function to call when the task is due
 */
function runLatest(run: () => Promise<void>): () => void {
  let isDue = false;
  let isRunning = false;
  const runWhileDue = async (): Promise<void> => {
    isRunning = true;
    try {
      while (isDue) {
        isDue = false;
        await run();
      }
    } finally {
      isRunning = false;
    }
  };
  return () => {
    isDue = true;
    if (!isRunning) detach('shared_process', runWhileDue());
  };
}
