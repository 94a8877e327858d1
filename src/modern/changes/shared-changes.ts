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

/** What instances need to tell each other of the changes of one server. */
export interface SharedChangesOptions {
  readonly changes: Changes;
  /** The same for all instances that have this server, and for no other server. */
  readonly topic: string;
  /** Opens a subscription of the gateway's own at the process, which runs. Returns what ends it. */
  listen(filter: SubscriptionFilter, answer: ModernCallAnswer): () => void;
  /** So much is subscribed to that not all of it is told by other instances. */
  onCut(): void;
}

/**
 * Subscriptions at one instance hear what the processes of all instances say (2026-07-28, basic/patterns/subscriptions;
 * decision 0022). Each instance says what its subscribers want; each that has a process listens there for what the others
 * want, and tells them what it hears. A subscription is opened when the others tell of it, or have had their time: what its
 * client changes after the acknowledgement, at any instance, it hears of.
 *
 * A store that is away only delays (P7). Whoever may have missed something is told that anything may have changed.
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
  /** Something may have changed that one of the others wanted to know, before that was known here. */
  #isLate = false;
  /** The others are to be told that nothing is known of them. */
  #asks = false;
  /** Each is one text at a time that waits for the store (P8). */
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

  /** Begins to hear the others. Before it, nothing is asked of the store. */
  join(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => contain('shared_process', () => this.#renew()), announceEveryMs).unref();
    detach('shared_process', this.#follow());
  }

  /**
   * Opens a subscription of a client that hears of changes at all instances.
   * @param open opens it at this instance's process
   * @param waits it is opened only when the others tell of it
   * @returns what ends it
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

  /** A process runs, and was sent nothing yet: what the others want is the first that it is asked. */
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

  /** The process is gone; what it had no time to tell is not known. */
  processLost(): void {
    const isWanted = this.#closeMirror();
    if (isWanted) this.#sayAny();
    this.#say();
  }

  /** The process is about to be ended: others need not wait for it. What is left here still hears of them. */
  drain(): void {
    this.#isDraining = true;
    this.#wasWanted = this.#closeMirror();
    this.#say();
  }

  /** The process has ended. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    this.#unfollow?.();
    this.#peers.close();
    if (!this.#wasWanted) return;
    // Its last requests may have changed something.
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
      if (word.kind === 'wants' && word.asks) this.#asks = false; // the others hear it too
    } else if (word.kind === 'wants') this.#note(word);
    else if (word.kind === 'change') this.#hear(readGatewayMessage(word.text));
    else if (word.kind === 'any') this.#hear(undefined);
    else if (word.of === this.#name) this.#peers.heeds(word.from, word.version);
  }

  #note(wants: FilterAnnouncement): void {
    const { isKnown, isNew } = this.#peers.note(wants);
    if (wants.asks) this.#sayAtOnce();
    if (!isNew && !wants.asks) return;
    // One that was there before, and is not known: the process ran without telling of what it wants.
    this.#isLate ||= !isKnown && !wants.asks && !isEmptyFilter(wants.filter) && this.#mirror !== undefined;
    this.#heed();
  }

  /** The process is asked to tell of what the others want now. */
  #heed(): void {
    this.#mirror?.setFilter(this.#peers.combinedFilter());
    this.#sayHeeds();
  }

  /** Once the process has answered, those are told who do not know. */
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

  /** Neither changes nor wishes of a while were heard. */
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

  /** What is wanted here is not what was said last. */
  #change(): void {
    this.#version += 1;
    this.#say();
  }

  #say(): void {
    if (this.#unfollow !== undefined) this.#sayWants();
  }

  /** What the others must know before they open further subscriptions. */
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

  /** Tells the others, when the store is there again if it is not, until this is closed. */
  async #tell(word: () => PeerAnnouncement): Promise<void> {
    const { changes, topic } = this.#options;
    const { signal } = this.#closing;
    if (signal.aborted) return;
    await retryWhileUnavailable(() => changes.publish(topic, encodeAnnouncement(word())), signal).catch(ignoreAway);
  }
}

/**
 * What is wanted is said so often at most (P8): clients that come and go must not push out of the store what else is told
 * there, nor keep the processes of all instances busy with ever new subscriptions.
 */
const betweenWantsMs = 25;

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** How long the end of a gateway waits for a store that may be away. */
const lastWordMs = 250;

/** Who could not be told or heard before the end finds out by silence (P7). */
function ignoreAway(cause: unknown): undefined {
  if (!(cause instanceof StoreUnavailable)) throw cause;
}
