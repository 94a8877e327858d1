import type { ServerResponse } from 'node:http';
import { contain } from '../util/boundary.ts';
import type { BackendOwner } from './record/backend-owner.ts';
import type { MessageTap, PassedMessage } from './record/message-tap.ts';
import type { RecentEvents } from './record/recent-events.ts';
import type { SessionView, Snapshot } from './snapshot/snapshot.ts';

/** What one open page wants to see. */
export interface PageSubscription {
  readonly search: string;
  /** The session of which it wants the messages. */
  readonly watched: BackendOwner | undefined;
}

/** What open pages are shown. */
export interface PageSubscriptionsOptions {
  readonly tap: MessageTap;
  readonly events: RecentEvents;
  snapshot(search: string): Snapshot;
  /** The session that a page watches; undefined if it is not here (any more). */
  session(watched: BackendOwner): SessionView | undefined;
}

/** More pages are not served (P8): each costs a snapshot a second. */
export const maxOpenPages = 20;

/** How often pages are told what happened; what passes in between goes out together. */
const flushMs = 250;

/** How often they are told how all is. */
const flushesPerSnapshot = 4;

/** More messages of one session are counted and not sent, so that a flood neither fills the page nor this process (P8). */
const maxMessagesPerFlush = 50;

/** One open page. */
class Viewer {
  readonly wish: PageSubscription;
  readonly #outgoing: ServerResponse;
  readonly #unwatch: (() => void) | undefined;
  #told = 0;
  #messages: PassedMessage[] = [];
  #skipped = 0;

  constructor(outgoing: ServerResponse, wish: PageSubscription, flow: MessageTap) {
    this.wish = wish;
    this.#outgoing = outgoing;
    const { watched } = wish;
    if (watched === undefined) return;
    this.#unwatch = flow.watch({
      owner: watched,
      hasRoom: () => this.#messages.length < maxMessagesPerFlush,
      onMessage: (message) => {
        if (this.#messages.length < maxMessagesPerFlush) this.#messages.push(message);
        else this.#skipped += 1;
      },
    });
  }

  /** A page that does not read is told nothing until it does: it is sent what is, and not what was. */
  get isBehind(): boolean {
    return this.#outgoing.writableNeedDrain;
  }

  /** Tells how all is, and how the session is that the page watches: it may not be among those that are listed. */
  tell(snapshot: Snapshot, { session }: Pick<PageSubscriptionsOptions, 'session'>): void {
    const { watched } = this.wish;
    this.send('state', snapshot);
    if (watched !== undefined) this.send('watched', { ...watched, found: session(watched) });
  }

  flush(happenings: RecentEvents): void {
    if (this.isBehind) return;
    const news = happenings.after(this.#told);
    if (news.length > 0) {
      this.#told = (news.at(-1) as { number: number }).number;
      this.send('happened', news);
    }
    if (this.#messages.length === 0) return;
    const { server, session = '' } = this.wish.watched as BackendOwner;
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

/** The open pages. While there is none, nothing is done. */
export class PageSubscriptions {
  readonly #options: PageSubscriptionsOptions;
  readonly #viewers = new Set<Viewer>();
  #timer: NodeJS.Timeout | undefined;
  #flushes = 0;
  #isClosed = false;

  constructor(options: PageSubscriptionsOptions) {
    this.#options = options;
  }

  /** True if no page more is served. */
  get isFull(): boolean {
    return this.#isClosed || this.#viewers.size >= maxOpenPages;
  }

  /** Shows a page what there is, and from now on what changes, until it is closed. */
  add(outgoing: ServerResponse, wish: PageSubscription): void {
    const viewer = new Viewer(outgoing, wish, this.#options.tap);
    this.#viewers.add(viewer);
    outgoing.once('close', () => {
      viewer.end();
      this.#viewers.delete(viewer);
      if (this.#viewers.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    viewer.tell(this.#options.snapshot(wish.search), this.#options);
    viewer.flush(this.#options.events);
    this.#timer ??= setInterval(() => contain('admin', () => this.#flush()), flushMs).unref();
  }

  /** Ends all pages' streams; they try to come back, and find nobody. */
  close(): void {
    this.#isClosed = true;
    for (const viewer of this.#viewers) viewer.end();
  }

  #flush(): void {
    this.#flushes += 1;
    const { events: happenings } = this.#options;
    for (const viewer of this.#viewers) this.#contain(viewer, () => viewer.flush(happenings));
    if (this.#flushes % flushesPerSnapshot !== 0) return;
    const made = new Map<string, Snapshot>();
    for (const viewer of this.#viewers) {
      if (viewer.isBehind) continue;
      this.#contain(viewer, () => {
        const { search } = viewer.wish;
        const snapshot = made.get(search) ?? this.#options.snapshot(search);
        made.set(search, snapshot);
        viewer.tell(snapshot, this.#options);
      });
    }
  }

  /** A page that cannot be told something ends alone. */
  #contain(viewer: Viewer, work: () => void): void {
    contain('admin', work, () => viewer.end());
  }
}
