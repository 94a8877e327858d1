import { maxSubscriptions } from '../../protocol/kept-uris.ts';
import type { SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import { ChangeFeed, type ChangeFeedOptions } from './change-feed.ts';
import { isEmptyFilter } from './wanted-filters.ts';

export interface ProcessSubscriptionOptions extends Pick<ChangeFeedOptions, 'listen' | 'onChange'> {
  /** Other instances want more resources than one subscription may have (P8). */
  onTruncated(): void;
}

/** An instance's subscription at its own process on behalf of other instances. It lives as long as the process. */
export class ProcessSubscription {
  readonly #options: ProcessSubscriptionOptions;
  readonly #feed: ChangeFeed;
  readonly #uris = new Set<string>();
  #filter: SubscriptionFilter = {};
  #isTruncated = false;

  constructor(options: ProcessSubscriptionOptions) {
    this.#options = options;
    this.#feed = new ChangeFeed({ listen: options.listen, onChange: options.onChange, isUnordered: false });
  }

  /** True if another instance wants any changes. */
  get isNeeded(): boolean {
    return !isEmptyFilter(this.#filter);
  }

  /** Replaces the filter. */
  setFilter(filter: SubscriptionFilter): void {
    this.#filter = filter;
    const { resourceSubscriptions: uris = [], ...lists } = filter;
    this.#feed.openLists(lists);
    const wantedUris = new Set(uris.slice(0, maxSubscriptions));
    const isTruncated = wantedUris.size < uris.length;
    if (isTruncated && !this.#isTruncated) this.#options.onTruncated();
    this.#isTruncated = isTruncated;
    for (const uri of this.#uris) {
      if (wantedUris.has(uri)) continue;
      this.#uris.delete(uri);
      this.#feed.unsubscribe(uri);
    }
    for (const uri of wantedUris) {
      if (this.#uris.has(uri)) continue;
      this.#uris.add(uri);
      this.#feed.subscribe(uri, (outcome) => {
        if (outcome !== 'subscribed') this.#uris.delete(uri);
      });
    }
    this.#feed.flush();
  }

  /** Resolves when the process has answered the latest filter, whichever way, or after `close`. */
  settled(): Promise<void> {
    return this.#feed.settled();
  }

  close(): void {
    this.#feed.close();
  }
}
