import type { SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';
import type { FilterAnnouncement } from './peer-announcements.ts';
import { unionOfFilters } from './wanted-filters.ts';

/** An instance says what it wants this often, and is forgotten when it missed three times. */
export const announceEveryMs = 30_000;
const forgottenAfterMs = 3 * announceEveryMs + announceEveryMs / 2;

/** A subscription waits no longer than this for other instances to tell of what it wants (P7). */
export const acknowledgeWaitMs = 1_000;

interface Peer {
  wants: FilterAnnouncement;
  heardAt: number;
  /** The version of our own wishes that it tells of. */
  acknowledged: number;
  /** It knows that its wishes are heeded here. */
  isTold: boolean;
}

interface Waiting {
  readonly version: number;
  readonly tell: () => void;
}

/** The other instances that have the same server: what they want, and whether they tell of what is wanted here. */
export class ChangePeers {
  readonly #peers = new Map<string, Peer>();
  readonly #waiting = new Set<Waiting>();

  /** Takes what one of them wants. Returns whether it is known, and whether its wishes are others than before. */
  note(wants: FilterAnnouncement): { readonly isKnown: boolean; readonly isNew: boolean } {
    const known = this.#peers.get(wants.from);
    const isNew = known?.wants.version !== wants.version;
    const isTold = !isNew && !wants.asks && known?.isTold === true;
    this.#peers.set(wants.from, { wants, heardAt: performance.now(), acknowledged: known?.acknowledged ?? 0, isTold });
    this.#check();
    return { isKnown: known !== undefined, isNew };
  }

  /** One of them tells of our wishes, as of this version. */
  heeds(from: string, version: number): void {
    const peer = this.#peers.get(from);
    if (peer === undefined) return;
    peer.acknowledged = Math.max(peer.acknowledged, version);
    this.#check();
  }

  /** What they want together. */
  combinedFilter(): SubscriptionFilter {
    return unionOfFilters([...this.#peers.values()].map(({ wants }) => wants.filter));
  }

  /** Those that are to be told that their wishes, as they are now, are heeded here; they count as told from now on. */
  takeUnacknowledged(): readonly FilterAnnouncement[] {
    const untold = [...this.#peers.values()].filter(({ isTold }) => !isTold);
    for (const peer of untold) peer.isTold = true;
    return untold.map(({ wants }) => wants);
  }

  /** Nobody's wishes are heeded here any more. */
  forgetAcknowledgements(): void {
    for (const peer of this.#peers.values()) peer.isTold = false;
  }

  /** Resolves when all that have a process tell of our wishes as of this version, or have taken too long. */
  whenAcknowledged(version: number): Promise<void> {
    if (this.#isHeeded(version)) return Promise.resolve();
    return new Promise((resolve) => {
      const waiting: Waiting = {
        version,
        tell: () => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          resolve();
        },
      };
      const timer = setTimeout(() => this.#giveUp(version), acknowledgeWaitMs);
      this.#waiting.add(waiting);
    });
  }

  /** Those that were not heard of for long are lost. Returns true if there were such. */
  forgetLost(): boolean {
    const before = this.#peers.size;
    for (const [from, { heardAt }] of this.#peers) {
      if (performance.now() - heardAt > forgottenAfterMs) this.#peers.delete(from);
    }
    this.#check();
    return this.#peers.size < before;
  }

  /** Nobody is waited for any more. */
  close(): void {
    this.#peers.clear();
    this.#check();
  }

  #isHeeded(version: number): boolean {
    return [...this.#peers.values()].every(({ wants, acknowledged: heeds }) => !wants.isRunning || heeds >= version);
  }

  /** One that does not answer may be lost: no other subscription waits for it, until it speaks again. */
  #giveUp(version: number): void {
    for (const peer of this.#peers.values()) {
      if (peer.acknowledged < version) peer.wants = { ...peer.wants, isRunning: false };
    }
    this.#check();
  }

  #check(): void {
    for (const { version, tell } of [...this.#waiting]) if (this.#isHeeded(version)) tell();
  }
}
