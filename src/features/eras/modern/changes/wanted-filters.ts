import { listChanges, type SubscriptionFilter } from '../../../../core/protocol/modern/subscription-filter.ts';

/**
 * How many URIs, and bytes of them, are announced to other instances (P8). The filter is one short text in the store,
 * and each instance subscribes to it at its process. Only the subscriber's own instance reports changes of further
 * resources.
 */
export const maxAnnouncedUris = 500;
export const maxAnnouncedBytes = 48 * 1024;

/** The union of all subscribers' filters, with counts. */
export class WantedFilters {
  readonly #counts = new Map<string, number>();

  /** Adds a filter. Returns true if some of it is new. */
  add(filter: SubscriptionFilter): boolean {
    let isNew = false;
    for (const key of filterKeys(filter)) {
      const count = this.#counts.get(key) ?? 0;
      this.#counts.set(key, count + 1);
      isNew ||= count === 0;
    }
    return isNew;
  }

  /** Removes a filter. Returns true if some of it is no longer wanted by anybody. */
  remove(filter: SubscriptionFilter): boolean {
    let isGone = false;
    for (const key of filterKeys(filter)) {
      const count = (this.#counts.get(key) ?? 0) - 1;
      if (count > 0) this.#counts.set(key, count);
      else isGone = this.#counts.delete(key) || isGone;
    }
    return isGone;
  }

  /** The union within the limits, and whether the limits left out some of it. */
  snapshot(): { readonly filter: SubscriptionFilter; readonly isTruncated: boolean } {
    const all = [...this.#counts.keys()];
    const uris = all.filter((key) => key.startsWith(uriPrefix)).map((key) => key.slice(uriPrefix.length));
    const announced: string[] = [];
    let bytes = 0;
    for (const uri of uris) {
      bytes += Buffer.byteLength(JSON.stringify(uri)) + 1;
      if (announced.length === maxAnnouncedUris || bytes > maxAnnouncedBytes) break;
      announced.push(uri);
    }
    return { filter: toFilter(all, announced), isTruncated: announced.length < uris.length };
  }
}

/** Returns the union of filters. */
export function unionOfFilters(filters: readonly SubscriptionFilter[]): SubscriptionFilter {
  const uris = new Set(filters.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions));
  return toFilter(
    listChanges.map(([flag]) => flag).filter((flag) => filters.some((filter) => filter[flag] === true)),
    [...uris],
  );
}

/** True if the filter asks for nothing. */
export const isEmptyFilter = (filter: SubscriptionFilter): boolean => Object.keys(filter).length === 0;

const uriPrefix = 'uri ';

const filterKeys = (filter: SubscriptionFilter): string[] => [
  ...listChanges.map(([flag]) => flag).filter((flag) => filter[flag] === true),
  ...(filter.resourceSubscriptions ?? []).map((uri) => uriPrefix + uri),
];

const toFilter = (flags: readonly string[], uris: readonly string[]): SubscriptionFilter => ({
  ...Object.fromEntries(listChanges.filter(([flag]) => flags.includes(flag)).map(([flag]) => [flag, true])),
  ...(uris.length > 0 && { resourceSubscriptions: uris }),
});
