import { randomUUID } from 'node:crypto';
import type { ModernCallAnswer } from '../../call/modern-answer.ts';
import { type Message, readGatewayMessage } from '../../protocol/message/message.ts';
import type { SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import { ChangeThrottle } from '../../store/shared/change-throttle.ts';
import type { Changes } from '../../store/shared/changes.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { contain, detach } from '../../util/boundary.ts';
import { runLatest } from '../../util/run-latest.ts';
import { settlesWithin } from '../../util/settles-within.ts';
import {
  decodeAnnouncement,
  encodeAnnouncement,
  type FilterAnnouncement,
  type PeerAnnouncement,
} from './peer-announcements.ts';
import { announceEveryMs, ChangePeers } from './peers.ts';
import { ProcessSubscription } from './process-subscription.ts';
import { ListenSubscription } from './subscription.ts';
import { isEmptyFilter, WantedFilters } from './wanted-filters.ts';

export interface SharedChangesOptions {
  readonly changes: Changes;
  /** The server's topic, the same on all instances and different from every other server's. */
  readonly topic: string;
  /** Opens a subscription of the gateway's own at the running process. Returns the function that ends it. */
  listen(filter: SubscriptionFilter, answer: ModernCallAnswer): () => void;
  /** Too much is subscribed to: other instances do not report changes of all of it. */
  onCut(): void;
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
  readonly #subscriptions = new Set<ListenSubscription>();
  readonly #own = new WantedFilters();
  readonly #peers = new ChangePeers();
  readonly #teller: ChangeThrottle;
  readonly #closing = new AbortController();
  #mirror: ProcessSubscription | undefined;
  #wasWanted = false;
  #isDraining = false;
  #unfollow: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #version = 0;
  #isCut = false;
  /** True if a peer's filter came late: something that it wants may have changed before. */
  #isLate = false;
  /** True if the next announcement asks the others to announce themselves. */
  #asks = false;
  /** Of each kind only one text waits for the store at a time (P8). */
  readonly #sayWants = runLatest(async () => {
    await this.#tell(() => this.#wants());
    await delay(betweenWantsMs);
  });
  readonly #sayHeeds = runLatest(() => this.#tellHeeds());
  readonly #sayAny = runLatest(() => this.#tell(() => ({ kind: 'any', from: this.#name })));

  constructor(options: SharedChangesOptions) {
    this.#options = options;
    this.#teller = new ChangeThrottle(options.changes, (cause) => this.#untold(cause));
  }

  /** Begins to listen to the others. Before that, the store is not used. */
  join(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => contain('shared_process', () => this.#renew()), announceEveryMs).unref();
    detach('shared_process', this.#follow());
  }

  /**
   * Opens a client's subscription, which gets the changes of all instances.
   * @param open opens the subscription at this instance's process
   * @param waits true to open it only after the others have acknowledged its filter
   * @returns the function that ends the subscription
   */
  listen(
    request: Message,
    answer: ModernCallAnswer,
    waits: boolean,
    open: (answer: ModernCallAnswer) => () => void,
  ): () => void {
    this.join();
    const subscription = new ListenSubscription(request, answer, () => {
      this.#subscriptions.delete(subscription);
      if (this.#own.remove(subscription.filter)) this.#change();
    });
    this.#subscriptions.add(subscription);
    if (this.#own.add(subscription.filter)) this.#change();
    let cancel = (): void => undefined;
    const begin = (): void => {
      if (!subscription.isOver) cancel = open(subscription);
    };
    if (waits) detach('shared_process', this.#peers.whenAcknowledged(this.#version).then(begin));
    else begin();
    return () => {
      subscription.end();
      cancel();
    };
  }

  /** A process is ready and was sent no request yet: the subscription for the others is its first request. */
  processReady(): void {
    if (this.#isDraining) return;
    const mirror = new ProcessSubscription({
      listen: this.#options.listen,
      onChange: (text) => {
        this.#teller.notify(this.#options.topic, encodeAnnouncement({ kind: 'change', from: this.#name, text }));
        return true;
      },
      onCut: () => this.#options.onCut(),
    });
    this.#mirror = mirror;
    this.#heed();
    this.#sayAtOnce();
  }

  /** The process has ended, perhaps before it could report some changes. */
  processLost(): void {
    const isWanted = this.#closeMirror();
    if (isWanted) this.#sayAny();
    this.#say();
  }

  /**
   * The process is about to end, so others need not wait for it. Remaining subscriptions here still get the changes of
   * others.
   */
  drain(): void {
    this.#isDraining = true;
    this.#wasWanted = this.#closeMirror();
    this.#say();
  }

  /** Ends the exchange with the others, after the process has ended. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    this.#unfollow?.();
    this.#peers.close();
    if (!this.#wasWanted) return;
    // The last requests of the process may have changed something.
    const { changes, topic } = this.#options;
    const announced = changes.publish(topic, encodeAnnouncement({ kind: 'any', from: this.#name })).catch(ignoreAway);
    await settlesWithin(announced, lastWordMs);
  }

  #closeMirror(): boolean {
    const mirror = this.#mirror;
    this.#mirror = undefined;
    mirror?.close();
    this.#peers.forgetAcknowledgements();
    return mirror?.isNeeded === true;
  }

  async #follow(): Promise<void> {
    const { changes, topic } = this.#options;
    const listener = {
      onChange: (text: Buffer) => this.#take(decodeAnnouncement(text)),
      onMissed: () => this.#missed(),
    };
    const { signal } = this.#closing;
    const unfollow = await retryWhileUnavailable(() => changes.subscribe(topic, listener), signal).catch(ignoreAway);
    if (unfollow === undefined || signal.aborted) return unfollow?.();
    this.#unfollow = unfollow;
    this.#sayAtOnce({ asks: true });
  }

  #take(word: PeerAnnouncement): void {
    if (word.from === this.#name) {
      if (word.kind === 'wants' && word.asks) this.#asks = false; // the others get it too
    } else if (word.kind === 'wants') this.#note(word);
    else if (word.kind === 'change') this.#hear(readGatewayMessage(word.text));
    else if (word.kind === 'any') this.#hear(undefined);
    else if (word.of === this.#name) this.#peers.heeds(word.from, word.version);
  }

  #note(wants: FilterAnnouncement): void {
    const { isKnown, isNew } = this.#peers.note(wants);
    if (wants.asks) this.#sayAtOnce();
    if (!isNew && !wants.asks) return;
    // An unknown peer that does not ask was there before us: our process ran without reporting changes to it.
    this.#isLate ||= !isKnown && !wants.asks && !isEmptyFilter(wants.filter) && this.#mirror !== undefined;
    this.#heed();
  }

  /** Subscribes at the process to what the others want now. */
  #heed(): void {
    this.#mirror?.setFilter(this.#peers.combinedFilter());
    this.#sayHeeds();
  }

  /** Acknowledges the peers' filters once the process has answered. */
  async #tellHeeds(): Promise<void> {
    const mirror = this.#mirror;
    await mirror?.settled();
    if (mirror === undefined || mirror !== this.#mirror) return;
    if (this.#isLate) this.#sayAny();
    this.#isLate = false;
    for (const { from: of, version } of this.#peers.takeUnacknowledged()) {
      await this.#tell(() => ({ kind: 'heeds', from: this.#name, of, version }));
    }
  }

  #hear(change: Message | undefined): void {
    for (const subscription of [...this.#subscriptions]) subscription.notify(change);
  }

  /** Changes and filters of the others may have been missed. */
  #missed(): void {
    this.#hear(undefined);
    this.#sayAtOnce({ asks: true });
  }

  #untold(cause: unknown): void {
    ignoreAway(cause);
    this.#sayAny();
  }

  #renew(): void {
    if (this.#peers.forgetLost()) this.#mirror?.setFilter(this.#peers.combinedFilter());
    this.#say();
  }

  /** The filter of this instance's subscribers has changed. */
  #change(): void {
    this.#version += 1;
    this.#say();
  }

  #say(): void {
    if (this.#unfollow !== undefined) this.#sayWants();
  }

  /** Announces at once, because the others must know before they open further subscriptions. */
  #sayAtOnce({ asks = false } = {}): void {
    this.#asks ||= asks;
    if (this.#unfollow !== undefined)
      detach(
        'shared_process',
        this.#tell(() => this.#wants()),
      );
  }

  #wants(): FilterAnnouncement {
    const { filter, isCut } = this.#own.snapshot();
    if (isCut && !this.#isCut) this.#options.onCut();
    this.#isCut = isCut;
    const isRunning = this.#mirror !== undefined;
    return { kind: 'wants', from: this.#name, filter, version: this.#version, isRunning, asks: this.#asks };
  }

  /** Publishes an announcement. While the store is away, this waits until it is back or the exchange is closed. */
  async #tell(word: () => PeerAnnouncement): Promise<void> {
    const { changes, topic } = this.#options;
    const { signal } = this.#closing;
    if (signal.aborted) return;
    await retryWhileUnavailable(() => changes.publish(topic, encodeAnnouncement(word())), signal).catch(ignoreAway);
  }
}

/**
 * The pause between announcements of the filter (P8). Clients that come and go must not push other announcements out of
 * the store, nor keep all processes busy with new subscriptions.
 */
const betweenWantsMs = 25;

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** How long the gateway's end waits for a store that may be away. */
const lastWordMs = 250;

/** Ignores a store that is away at the end: the others notice the silence (P7). */
function ignoreAway(cause: unknown): undefined {
  if (!(cause instanceof StoreUnavailable)) throw cause;
}
