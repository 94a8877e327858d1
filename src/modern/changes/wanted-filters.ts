import { listChanges, type SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';

/**
 * More URIs or bytes of them are not told to other instances (P8): the filter is one short text in the store, and each
 * instance asks its process for it. Further resources are told of by the subscriber's own instance alone.
 */
export const maxAnnouncedUris = 500;
export const maxAnnouncedBytes = 48 * 1024;

/** What all subscribers together want to hear of. */
export class WantedFilters {
  readonly #counts = new Map<string, number>();

  /** Returns true if nobody had wanted some of it before. */
  add(filter: SubscriptionFilter): boolean {
    let isNew = false;
    for (const key of keysOf(filter)) {
      const count = this.#counts.get(key) ?? 0;
      this.#counts.set(key, count + 1);
      isNew ||= count === 0;
    }
    return isNew;
  }

  /** Takes back what was added. Returns true if some of it is wanted by nobody now. */
  remove(filter: SubscriptionFilter): boolean {
    let isGone = false;
    for (const key of keysOf(filter)) {
      const count = (this.#counts.get(key) ?? 0) - 1;
      if (count > 0) this.#counts.set(key, count);
      else isGone = this.#counts.delete(key) || isGone;
    }
    return isGone;
  }

  /** All of it, within the bounds, and whether those left out some. */
  snapshot(): { readonly filter: SubscriptionFilter; readonly isCut: boolean } {
    const all = [...this.#counts.keys()];
    const uris = all.filter((key) => key.startsWith(uriMark)).map((key) => key.slice(uriMark.length));
    const told: string[] = [];
    let bytes = 0;
    for (const uri of uris) {
      bytes += Buffer.byteLength(JSON.stringify(uri)) + 1;
      if (told.length === maxAnnouncedUris || bytes > maxAnnouncedBytes) break;
      told.push(uri);
    }
    return { filter: filterOf(all, told), isCut: told.length < uris.length };
  }
}

/** The filter that asks for all that these ask for. */
export function unionOfFilters(filters: readonly SubscriptionFilter[]): SubscriptionFilter {
  const uris = new Set(filters.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions));
  return filterOf(
    listChanges.map(([flag]) => flag).filter((flag) => filters.some((filter) => filter[flag] === true)),
    [...uris],
  );
}

/** True if it asks for nothing. */
export const isEmptyFilter = (filter: SubscriptionFilter): boolean => Object.keys(filter).length === 0;

const uriMark = 'uri ';

const keysOf = (filter: SubscriptionFilter): string[] => [
  ...listChanges.map(([flag]) => flag).filter((flag) => filter[flag] === true),
  ...(filter.resourceSubscriptions ?? []).map((uri) => uriMark + uri),
];

const filterOf = (flags: readonly string[], uris: readonly string[]): SubscriptionFilter => ({
  ...Object.fromEntries(listChanges.filter(([flag]) => flags.includes(flag)).map(([flag]) => [flag, true])),
  ...(uris.length > 0 && { resourceSubscriptions: uris }),
});
