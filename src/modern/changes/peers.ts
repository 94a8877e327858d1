import type { Filter } from '../../protocol/modern/subscription-filter.ts';
import type { Wants } from './peer-announcements.ts';
import { unionOf } from './wanted-filters.ts';

/** An instance says what it wants this often, and is forgotten when it missed three times. */
export const sayEveryMs = 30_000;
const forgottenAfterMs = 3 * sayEveryMs + sayEveryMs / 2;

/** A subscription waits no longer than this for other instances to tell of what it wants (P7). */
export const heedMs = 1_000;

interface Peer {
  wants: Wants;
  heardAt: number;
  /** The version of our own wishes that it tells of. */
  heeds: number;
  /** It knows that its wishes are heeded here. */
  isTold: boolean;
}

interface Waiting {
  readonly version: number;
  readonly tell: () => void;
}

/** The other instances that have the same server: what they want, and whether they tell of what is wanted here. */
export class Peers {
  readonly #peers = new Map<string, Peer>();
  readonly #waiting = new Set<Waiting>();

  /** Takes what one of them wants. Returns whether it is known, and whether its wishes are others than before. */
  note(wants: Wants): { readonly isKnown: boolean; readonly isNew: boolean } {
    const known = this.#peers.get(wants.from);
    const isNew = known?.wants.version !== wants.version;
    const isTold = !isNew && !wants.asks && known?.isTold === true;
    this.#peers.set(wants.from, { wants, heardAt: performance.now(), heeds: known?.heeds ?? 0, isTold });
    this.#check();
    return { isKnown: known !== undefined, isNew };
  }

  /** One of them tells of our wishes, as of this version. */
  heeds(from: string, version: number): void {
    const peer = this.#peers.get(from);
    if (peer === undefined) return;
    peer.heeds = Math.max(peer.heeds, version);
    this.#check();
  }

  /** What they want together. */
  wanted(): Filter {
    return unionOf([...this.#peers.values()].map(({ wants }) => wants.filter));
  }

  /** Those that are to be told that their wishes, as they are now, are heeded here; they count as told from now on. */
  takeUntold(): readonly Wants[] {
    const untold = [...this.#peers.values()].filter(({ isTold }) => !isTold);
    for (const peer of untold) peer.isTold = true;
    return untold.map(({ wants }) => wants);
  }

  /** Nobody's wishes are heeded here any more. */
  forgetTold(): void {
    for (const peer of this.#peers.values()) peer.isTold = false;
  }

  /** Resolves when all that have a process tell of our wishes as of this version, or have taken too long. */
  whenHeeded(version: number): Promise<void> {
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
      const timer = setTimeout(() => this.#giveUp(version), heedMs);
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
    return [...this.#peers.values()].every(({ wants, heeds }) => !wants.isRunning || heeds >= version);
  }

  /** One that does not answer may be lost: no other subscription waits for it, until it speaks again. */
  #giveUp(version: number): void {
    for (const peer of this.#peers.values()) {
      if (peer.heeds < version) peer.wants = { ...peer.wants, isRunning: false };
    }
    this.#check();
  }

  #check(): void {
    for (const { version, tell } of [...this.#waiting]) if (this.#isHeeded(version)) tell();
  }
}
