import type { ServerResponse } from 'node:http';
import type { BackendOwner, ConsoleHost, MessageSource, PassedMessage } from './host.ts';
import type { FailedCalls } from './record/incidents/failed-calls.ts';
import type { RecentEvents } from './record/recent-events.ts';
import type { SessionQuery } from './sessions/session-list.ts';
import type { SessionView } from './sessions/session-view.ts';
import type { Snapshot } from './snapshot/snapshot.ts';

/** The data that one open page subscribes to. */
export interface PageSubscription extends SessionQuery {
  /** The session whose messages the page shows. */
  readonly watched: BackendOwner | undefined;
}

/** The sources of the data. */
export interface PageSubscriptionsOptions {
  readonly host: Pick<ConsoleHost, 'contain'>;
  readonly tap: MessageSource;
  readonly events: RecentEvents;
  readonly failedCalls: FailedCalls;
  /** Returns the name of the client of each session that is here, by its server and short name. */
  clients?(): (server: string, session: string) => string | undefined;
  snapshot(query: SessionQuery): Snapshot;
  /** Returns a session that a page watches; undefined if it is not on this instance. */
  session(watched: BackendOwner): SessionView | undefined;
  /** Returns the other instance that has a session; undefined if none has reported it. */
  instanceOf?(watched: BackendOwner): string | undefined;
}

/** The maximum number of open pages (P8): each page costs a snapshot a second. */
export const maxOpenPages = 20;

/** How often events and messages are sent. Those that happen between two flushes are sent together. */
const flushMs = 250;

/** How often snapshots are sent, in flushes. */
const flushesPerSnapshot = 4;

/**
 * The limit for messages in one flush. Further messages are only counted, so that a flood fills neither the page nor
 * this process (P8).
 */
const maxMessagesPerFlush = 50;

/** An open page and its event stream. */
class OpenPage {
  readonly subscription: PageSubscription;
  readonly #outgoing: ServerResponse;
  readonly #unwatch: (() => void) | undefined;
  #lastEventNumber = 0;
  #lastFailedCall = 0;
  #messages: PassedMessage[] = [];
  #skipped = 0;

  constructor(outgoing: ServerResponse, subscription: PageSubscription, tap: MessageSource) {
    this.subscription = subscription;
    this.#outgoing = outgoing;
    const { watched } = subscription;
    if (watched === undefined) return;
    this.#unwatch = tap.watch({
      owner: watched,
      hasRoom: () => this.#messages.length < maxMessagesPerFlush,
      onMessage: (message) => {
        if (this.#messages.length < maxMessagesPerFlush) this.#messages.push(message);
        else this.#skipped += 1;
      },
    });
  }

  /**
   * True while the page does not read. Snapshots and events are then skipped: later the page gets the current state.
   */
  get isBehind(): boolean {
    return this.#outgoing.writableNeedDrain;
  }

  /** Sends a snapshot, and the state of the watched session, which the snapshot may not list. */
  sendSnapshot(
    snapshot: Snapshot,
    { session, instanceOf }: Pick<PageSubscriptionsOptions, 'session' | 'instanceOf'>,
  ): void {
    const { watched } = this.subscription;
    this.send('state', snapshot);
    if (watched === undefined) return;
    const found = session(watched);
    this.send('watched', { ...watched, found, instance: found === undefined ? instanceOf?.(watched) : undefined });
  }

  flush({ events, failedCalls, clients }: Pick<PageSubscriptionsOptions, 'events' | 'failedCalls' | 'clients'>): void {
    if (this.isBehind) return;
    const newCalls = failedCalls.after(this.#lastFailedCall);
    if (newCalls.length > 0) {
      this.#lastFailedCall = (newCalls.at(-1) as { number: number }).number;
      const clientOf = clients?.();
      this.send(
        'failed',
        newCalls.map((call) => ({
          ...call,
          client: call.client ?? (call.session && clientOf?.(call.server, call.session)),
        })),
      );
    }
    const newEvents = events.after(this.#lastEventNumber);
    if (newEvents.length > 0) {
      this.#lastEventNumber = (newEvents.at(-1) as { number: number }).number;
      this.send('happened', newEvents);
    }
    if (this.#messages.length === 0) return;
    const { server, session = '' } = this.subscription.watched as BackendOwner;
    this.send('flow', { server, session, messages: this.#messages, skipped: this.#skipped });
    this.#messages = [];
    this.#skipped = 0;
  }

  send(type: string, value: unknown): void {
    this.#outgoing.write(`event: ${type}\ndata: ${JSON.stringify(value)}\n\n`);
  }

  end(): void {
    this.#unwatch?.();
    this.#outgoing.end();
  }
}

/** Sends snapshots, events and messages to the open pages. Without an open page nothing runs. */
export class PageSubscriptions {
  readonly #options: PageSubscriptionsOptions;
  readonly #pages = new Set<OpenPage>();
  #timer: NodeJS.Timeout | undefined;
  #flushes = 0;
  #isClosed = false;

  constructor(options: PageSubscriptionsOptions) {
    this.#options = options;
  }

  /** True if no further page is served. */
  get isFull(): boolean {
    return this.#isClosed || this.#pages.size >= maxOpenPages;
  }

  /** Sends a page the current state, and every change until the page disconnects. */
  add(outgoing: ServerResponse, subscription: PageSubscription): void {
    const page = new OpenPage(outgoing, subscription, this.#options.tap);
    this.#pages.add(page);
    outgoing.once('close', () => {
      page.end();
      this.#pages.delete(page);
      if (this.#pages.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    page.sendSnapshot(this.#options.snapshot(subscription), this.#options);
    page.flush(this.#options);
    this.#timer ??= setInterval(() => this.#options.host.contain(() => this.#flush()), flushMs).unref();
  }

  /** Ends the streams of all pages. Their reconnects are refused. */
  close(): void {
    this.#isClosed = true;
    for (const page of this.#pages) page.end();
  }

  #flush(): void {
    this.#flushes += 1;
    for (const page of this.#pages) this.#contain(page, () => page.flush(this.#options));
    if (this.#flushes % flushesPerSnapshot !== 0) return;
    const snapshotsByQuery = new Map<string, Snapshot>();
    for (const page of this.#pages) {
      if (page.isBehind) continue;
      this.#contain(page, () => {
        const { page: number, search, isEverywhere, order, isFailedOnly, of } = page.subscription;
        const query = JSON.stringify([number, isEverywhere, order, isFailedOnly, of, search]);
        const snapshot = snapshotsByQuery.get(query) ?? this.#options.snapshot(page.subscription);
        snapshotsByQuery.set(query, snapshot);
        page.sendSnapshot(snapshot, this.#options);
      });
    }
  }

  /** Runs work for one page. If it throws, only this page is disconnected. */
  #contain(page: OpenPage, work: () => void): void {
    this.#options.host.contain(work, () => page.end());
  }
}
