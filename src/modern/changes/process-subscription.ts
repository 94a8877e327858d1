import { maxSubscriptions, type SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import { ChangeFeed, type ChangeFeedOptions } from './change-feed.ts';
import { isEmptyFilter } from './wanted-filters.ts';

/** What a mirror needs of its instance. */
export interface ProcessSubscriptionOptions extends Pick<ChangeFeedOptions, 'listen' | 'onChange'> {
  /** More resources are wanted than the process is asked for (P8). */
  onCut(): void;
}

/** The subscription of an instance at its own process, of which it tells other instances; as long as the process runs. */
export class ProcessSubscription {
  readonly #options: ProcessSubscriptionOptions;
  readonly #feed: ChangeFeed;
  readonly #uris = new Set<string>();
  #filter: SubscriptionFilter = {};
  #isCut = false;

  constructor(options: ProcessSubscriptionOptions) {
    this.#options = options;
    this.#feed = new ChangeFeed({ listen: options.listen, onChange: options.onChange, isUnordered: false });
  }

  /** Somebody wants to hear of something. */
  get isNeeded(): boolean {
    return !isEmptyFilter(this.#filter);
  }

  /** Listens to this from now on. */
  setFilter(filter: SubscriptionFilter): void {
    this.#filter = filter;
    const { resourceSubscriptions: uris = [], ...lists } = filter;
    this.#feed.openLists(lists);
    const wanted = new Set(uris.slice(0, maxSubscriptions));
    const isCut = wanted.size < uris.length;
    if (isCut && !this.#isCut) this.#options.onCut();
    this.#isCut = isCut;
    for (const uri of this.#uris) {
      if (wanted.has(uri)) continue;
      this.#uris.delete(uri);
      this.#feed.unsubscribe(uri);
    }
    for (const uri of wanted) {
      if (this.#uris.has(uri)) continue;
      this.#uris.add(uri);
      this.#feed.subscribe(uri, (outcome) => {
        if (outcome !== 'subscribed') this.#uris.delete(uri);
      });
    }
    this.#feed.flush();
  }

  /** Resolves when the process has answered to what is wanted, whichever way, or the mirror is closed. */
  settled(): Promise<void> {
    return this.#feed.settled();
  }

  close(): void {
    this.#feed.close();
  }
}
