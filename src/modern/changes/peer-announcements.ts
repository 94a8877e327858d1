import type { SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';

/**
 * What an instance wants to hear of a server from the processes of all others.
 */
export interface FilterAnnouncement {
  readonly kind: 'wants';
  /** A name that no other instance has, and that this one has for this server alone. */
  readonly from: string;
  readonly filter: SubscriptionFilter;
  /** Goes up with each change of the filter. */
  readonly version: number;
  /** It has a process, which can tell of changes. */
  readonly isRunning: boolean;
  /** It knows nothing of the others, and wants to. */
  readonly asks: boolean;
}

/** What instances that each have a process of one server tell each other, under its topic. */
export type PeerAnnouncement =
  | FilterAnnouncement
  /** The process of `from` tells of what `of` wants, as of this version. */
  | { readonly kind: 'heeds'; readonly from: string; readonly of: string; readonly version: number }
  /** The process of `from` says that this has changed: a notification that names no subscription. */
  | { readonly kind: 'change'; readonly from: string; readonly text: Buffer }
  /** Of what the process of `from` tells of, anything may have changed. */
  | { readonly kind: 'any'; readonly from: string };

const newline = 0x0a;

/** A line of JSON, and behind it the text of the change as it is (P1). */
export function encodeAnnouncement(word: PeerAnnouncement): Buffer {
  if (word.kind !== 'change') return Buffer.from(`${JSON.stringify(word)}\n`);
  const { text, ...head } = word;
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), text]);
}

/** Reads what `writePeerWord` wrote, and `anyChange` of whoever tells of too much. */
export function decodeAnnouncement(bytes: Buffer): PeerAnnouncement {
  if (bytes.length === 0) return { kind: 'any', from: '' };
  const end = bytes.indexOf(newline);
  const head = JSON.parse(bytes.toString('utf8', 0, end)) as PeerAnnouncement;
  return head.kind === 'change' ? { ...head, text: bytes.subarray(end + 1) } : head;
}
