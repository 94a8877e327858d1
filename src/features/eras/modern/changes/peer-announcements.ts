import { parseOwn } from '../../../../core/protocol/json.ts';
import { filterOfKeys, type SubscriptionFilter } from '../../../../core/protocol/modern/subscription-filter.ts';

/** The changes of a server that an instance wants to hear of from the processes of the others. */
export interface FilterAnnouncement {
  readonly kind: 'wants';
  /** The instance's name for this server alone; no other instance has it. */
  readonly from: string;
  readonly filter: SubscriptionFilter;
  /** Rises with each change of the filter. */
  readonly version: number;
  /** True if the instance has a process, which can report changes. */
  readonly isRunning: boolean;
  /** True if the instance does not know the others, and asks them to announce themselves. */
  readonly asks: boolean;
}

/** The messages between instances that each have a process of one server, published under its topic. */
export type PeerAnnouncement =
  | FilterAnnouncement
  /** `from` acknowledges that its process reports the changes that `of` wants, as of this version. */
  | { readonly kind: 'heeds'; readonly from: string; readonly of: string; readonly version: number }
  /** The process of `from` has reported a change: a notification that names no subscription. */
  | { readonly kind: 'change'; readonly from: string; readonly text: Buffer }
  /** Anything that the process of `from` reports may have changed. */
  | { readonly kind: 'any'; readonly from: string };

const newline = 0x0a;

/** Encodes an announcement as a line of JSON, followed by the unchanged text of a change (P1). */
export function encodeAnnouncement(announcement: PeerAnnouncement): Buffer {
  if (announcement.kind !== 'change') return Buffer.from(`${JSON.stringify(announcement)}\n`);
  const { text, ...head } = announcement;
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), text]);
}

/** Decodes an announcement. An empty text means that anything may have changed: the store's throttle publishes it. */
export function decodeAnnouncement(bytes: Buffer): PeerAnnouncement {
  if (bytes.length === 0) return { kind: 'any', from: '' };
  const end = bytes.indexOf(newline);
  const head = parseOwn(bytes.subarray(0, end)) as PeerAnnouncement;
  return head.kind === 'change' ? { ...head, text: bytes.subarray(end + 1) } : head;
}

/**
 * How many URIs, and bytes of them, are announced to other instances (P8). The filter is one short text in the store,
 * and each instance subscribes to it at its process. Only the subscriber's own instance reports changes of further
 * resources.
 */
export const maxAnnouncedUris = 500;
export const maxAnnouncedBytes = 48 * 1024;

/**
 * The filter for what the subscribers of an instance want, within the limits.
 * @param wanted keys of filters
 */
export function announcedFilter(wanted: Iterable<string>): {
  readonly filter: SubscriptionFilter;
  readonly isTruncated: boolean;
} {
  const { resourceSubscriptions: uris = [], ...lists } = filterOfKeys(wanted);
  const announced: string[] = [];
  let bytes = 0;
  for (const uri of uris) {
    bytes += Buffer.byteLength(JSON.stringify(uri)) + 1;
    if (announced.length === maxAnnouncedUris || bytes > maxAnnouncedBytes) break;
    announced.push(uri);
  }
  const filter = { ...lists, ...(announced.length > 0 && { resourceSubscriptions: announced }) };
  return { filter, isTruncated: announced.length < uris.length };
}

/** True if the filter asks for nothing. */
export const isEmptyFilter = (filter: SubscriptionFilter): boolean => Object.keys(filter).length === 0;
