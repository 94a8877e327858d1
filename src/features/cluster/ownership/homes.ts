import { keyOfGroupSession } from '../../../core/session/session-key.ts';
import { retryWhileUnavailable } from '../../../core/store/retry-unavailable.ts';
import type { Values } from '../../../core/store/shared/shared-data.ts';
import { ifUnavailable } from '../../../core/store/store-unavailable.ts';
import type { Lease } from './lease.ts';

/** Options of `Homes`. */
export interface HomesOptions {
  readonly values: Values;
  readonly lease: Pick<Lease, 'name'>;
  /** How long a home is remembered after the last session that was opened there, in milliseconds. */
  readonly ttlMs: number;
  /** How long a claim may wait for an unavailable store, in milliseconds. */
  readonly storeWaitMs: number;
  /** False if an instance is lost, or its state cannot be known. */
  isAlive(instance: string): Promise<boolean>;
}

/**
 * Where the clients of an affinity come back to: the instance that has opened their last session, and has its process
 * (docs/decisions/0105). A wrong or missing home costs only the state, so an unavailable store delays nobody. The home of
 * a client of HTTP+SSE is the instance with its stream; without it, the client's POSTs would be refused.
 */
export class Homes {
  readonly #options: HomesOptions;

  constructor(options: HomesOptions) {
    this.#options = options;
  }

  /**
   * The other instance that is the home; undefined if this instance is, or if there is none. Rejects with
   * `StoreUnavailable` if that cannot be known.
   */
  async find(home: readonly string[]): Promise<string | undefined> {
    const { values, lease, isAlive } = this.#options;
    const found = (await values.get('owner', keyOf(home)))?.toString();
    return found !== undefined && found !== lease.name && (await isAlive(found)) ? found : undefined;
  }

  /** As `find`; undefined also if that cannot be known. */
  findIfKnown(home: readonly string[]): Promise<string | undefined> {
    return this.find(home).catch(ifUnavailable(undefined));
  }

  /**
   * This instance is the home from now on.
   * @param waits whether an unavailable store may delay this, for `storeWaitMs`
   * @returns false if the store does not know it
   */
  claim(home: readonly string[], waits = false): Promise<boolean> {
    const { values, lease, ttlMs, storeWaitMs } = this.#options;
    const set = () => values.set('owner', keyOf(home), Buffer.from(lease.name), ttlMs);
    const stop = () => (waits ? AbortSignal.timeout(storeWaitMs) : AbortSignal.abort());
    return retryWhileUnavailable(set, stop).then(() => true, ifUnavailable(false));
  }
}

/** No id of a task leads to this key. */
const keyOf = (home: readonly string[]): string => `home ${keyOfGroupSession(home)}`;
