import { keyOfGroupSession } from '../../../core/session/session-key.ts';
import { retryWhileUnavailable } from '../../../core/store/retry-unavailable.ts';
import { ifUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import type { ClusterOptions } from '../cluster-parts.ts';
import type { Directory } from './directory.ts';
import type { Lease } from './lease.ts';

/**
 * Where the clients of an affinity come back to: the instance that has opened their last session, and has its process
 * (docs/decisions/0105). A wrong or missing home costs only the state, so an unavailable store delays nobody. The home of
 * a client of HTTP+SSE is the instance with its stream; without it, the client's POSTs would be refused.
 */
export class Homes {
  readonly #options: ClusterOptions;
  readonly #lease: Lease;
  readonly #directory: Directory;
  /** The homes of connections that are open here, and when they were claimed, on the monotonic clock. */
  readonly #kept = new Map<string, number>();

  constructor(options: ClusterOptions, lease: Lease, directory: Directory) {
    this.#options = options;
    this.#lease = lease;
    this.#directory = directory;
  }

  /**
   * The other instance that is the home; undefined if this instance is, or if there is none. Rejects with
   * `StoreUnavailable` if that cannot be known.
   */
  async find(home: readonly string[]): Promise<string | undefined> {
    const found = (await this.#options.store.values.get('owner', keyOf(home)))?.toString();
    const isOther = found !== undefined && found !== this.#lease.name;
    return isOther && (await this.#directory.isAlive(found)) ? found : undefined;
  }

  /**
   * This instance is the home from now on.
   * @returns false if the store does not know it
   */
  claim(home: readonly string[]): Promise<boolean> {
    return this.#claim(keyOf(home), () => AbortSignal.abort());
  }

  /**
   * This instance is the home until `drop`. An unavailable store may delay the claim for `storeWaitMs`.
   * @returns false if the other instances cannot learn it
   */
  keep(home: readonly string[]): Promise<boolean> {
    const key = keyOf(home);
    this.#kept.set(key, performance.now());
    return this.#claimKept(key);
  }

  drop(home: readonly string[]): void {
    this.#kept.delete(keyOf(home));
  }

  /**
   * Claims again what is kept: the store would forget it, or may have lost it, or this instance has another name.
   * @param afterMs younger claims are left alone
   */
  renew(afterMs = this.#options.homeTtlMs / 2): void {
    const now = performance.now();
    for (const [key, claimedAt] of this.#kept) {
      if (now - claimedAt < afterMs) continue;
      this.#kept.set(key, now);
      const renewed = this.#claimKept(key).then((isKnown) => {
        if (!isKnown && this.#kept.has(key)) this.#kept.set(key, now - this.#options.homeTtlMs / 4); // again sooner
      });
      detach('cluster', renewed);
    }
  }

  async #claimKept(key: string): Promise<boolean> {
    // Without its lease, the others take this instance for lost.
    if (!this.#lease.isHeld && !(await this.#lease.isReady())) return false;
    return this.#claim(key, () => AbortSignal.timeout(this.#options.limits.storeWaitMs));
  }

  #claim(key: string, stop: () => AbortSignal): Promise<boolean> {
    const { store, homeTtlMs } = this.#options;
    const set = () => store.values.set('owner', key, Buffer.from(this.#lease.name), homeTtlMs);
    return retryWhileUnavailable(set, stop).then(() => true, ifUnavailable(false));
  }
}

/** No id of a task leads to this key. */
const keyOf = (home: readonly string[]): string => `home ${keyOfGroupSession(home)}`;
