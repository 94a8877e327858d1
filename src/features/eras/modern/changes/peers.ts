import {
  filterOfKeys,
  keysOfFilter,
  type SubscriptionFilter,
} from '../../../../core/protocol/modern/subscription-filter.ts';
import { Milestone } from '../../../../core/util/timing/milestone.ts';
import { settlesWithin } from '../../../../core/util/timing/within.ts';
import type { FilterAnnouncement } from './peer-announcements.ts';

/** How often an instance announces its filter. An instance that missed three announcements is forgotten. */
export const announceEveryMs = 30_000;
const forgottenAfterMs = 3 * announceEveryMs + announceEveryMs / 2;

/** A subscription waits no longer than this until other instances acknowledge its filter (P7). */
export const acknowledgeWaitMs = 1_000;

interface Peer {
  wants: FilterAnnouncement;
  lastSeenAt: number;
  /** The version of our own filter that the peer has acknowledged. */
  acknowledged: number;
  /** True if the peer was sent our acknowledgement of its filter. */
  isAcknowledgementSent: boolean;
}

/** The other instances of the same server: their filters, and whether they have acknowledged ours. */
export class ChangePeers {
  readonly #peers = new Map<string, Peer>();
  /** What waits until a version of our filter is acknowledged. */
  readonly #waits = new Map<Milestone, number>();

  /** Records a peer's filter. Returns whether the peer was known, and whether its filter is new. */
  noteFilter(wants: FilterAnnouncement): { readonly isKnown: boolean; readonly isNew: boolean } {
    const known = this.#peers.get(wants.from);
    const isNew = known?.wants.version !== wants.version;
    const isTold = !isNew && !wants.asks && known?.isAcknowledgementSent === true;
    this.#peers.set(wants.from, {
      wants,
      lastSeenAt: performance.now(),
      acknowledged: known?.acknowledged ?? 0,
      isAcknowledgementSent: isTold,
    });
    this.#resolveWaits();
    return { isKnown: known !== undefined, isNew };
  }

  /** A peer has acknowledged our filter, as of this version. */
  noteAcknowledged(from: string, version: number): void {
    const peer = this.#peers.get(from);
    if (peer === undefined) return;
    peer.acknowledged = Math.max(peer.acknowledged, version);
    this.#resolveWaits();
  }

  /** The union of all peers' filters. */
  combinedFilter(): SubscriptionFilter {
    return filterOfKeys([...this.#peers.values()].flatMap(({ wants }) => keysOfFilter(wants.filter)));
  }

  /** Returns the filters that still have to be acknowledged, and marks them as acknowledged. */
  takeUnacknowledged(): readonly FilterAnnouncement[] {
    const unacknowledged = [...this.#peers.values()].filter(({ isAcknowledgementSent: isTold }) => !isTold);
    for (const peer of unacknowledged) peer.isAcknowledgementSent = true;
    return unacknowledged.map(({ wants }) => wants);
  }

  /** No filter of a peer is served here any more: each has to be acknowledged again. */
  forgetAcknowledgements(): void {
    for (const peer of this.#peers.values()) peer.isAcknowledgementSent = false;
  }

  /** Resolves when all peers with a process have acknowledged this version of our filter, or after the wait. */
  async whenAcknowledged(version: number): Promise<void> {
    if (this.#isAcknowledged(version)) return;
    const wait = new Milestone();
    this.#waits.set(wait, version);
    if (!(await settlesWithin(wait.passed, acknowledgeWaitMs))) this.#stopWaitingFor(version);
  }

  /** Forgets peers that were silent for too long. Returns true if there were any. */
  forgetLost(): boolean {
    const before = this.#peers.size;
    for (const [from, { lastSeenAt }] of this.#peers) {
      if (performance.now() - lastSeenAt > forgottenAfterMs) this.#peers.delete(from);
    }
    this.#resolveWaits();
    return this.#peers.size < before;
  }

  /** Forgets all peers and ends every wait. */
  close(): void {
    this.#peers.clear();
    this.#resolveWaits();
  }

  #isAcknowledged(version: number): boolean {
    return [...this.#peers.values()].every(({ wants, acknowledged }) => !wants.isRunning || acknowledged >= version);
  }

  /** A peer that does not answer may be lost: no further subscription waits for it until it announces itself again. */
  #stopWaitingFor(version: number): void {
    for (const peer of this.#peers.values()) {
      if (peer.acknowledged < version) peer.wants = { ...peer.wants, isRunning: false };
    }
    this.#resolveWaits();
  }

  #resolveWaits(): void {
    for (const [wait, version] of [...this.#waits]) {
      if (!this.#isAcknowledged(version)) continue;
      this.#waits.delete(wait);
      wait.pass();
    }
  }
}
