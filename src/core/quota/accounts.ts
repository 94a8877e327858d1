import type { Principal } from '../protocol/principal.ts';
import type { QuotaAccount } from './account.ts';

/** The number of accounts at the first search for unused ones. The next search follows when the number has doubled. */
const firstSweepAt = 1_000;

/**
 * One account for each principal that uses resources or did so lately. At most twice as many accounts are kept as are
 * in use, or `firstSweepAt` if that is more (P8).
 */
export class QuotaAccounts {
  readonly #byKey = new Map<string, QuotaAccount>();
  /**
   * The accounts by principal object. A user's requests mostly share one object, and a look-up is cheaper than the key.
   */
  readonly #byPrincipal = new WeakMap<Principal, QuotaAccount>();
  readonly #create: (key: string) => QuotaAccount;
  #sweepAt = firstSweepAt;

  /** @param create makes an account under a unique key */
  constructor(create: (key: string) => QuotaAccount) {
    this.#create = create;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** Returns the account of a principal. Call this for each use, since an unused account may be dropped. */
  accountFor(principal: Principal): QuotaAccount {
    const found = this.#byPrincipal.get(principal);
    if (found !== undefined && !found.isForgotten) return found;
    const account = this.#lookUp(keyFor(principal));
    this.#byPrincipal.set(principal, account);
    return account;
  }

  #lookUp(key: string): QuotaAccount {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= this.#sweepAt) this.#sweep();
    const account = this.#create(key);
    this.#byKey.set(key, account);
    return account;
  }

  #sweep(): void {
    const nowMs = performance.now();
    for (const [key, account] of this.#byKey) {
      if (!account.isUnused(nowMs)) continue;
      account.isForgotten = true;
      this.#byKey.delete(key);
    }
    this.#sweepAt = Math.max(firstSweepAt, this.#byKey.size * 2);
  }
}

/** Makes a unique text for each principal. The lengths keep the parts apart. */
const keyFor = ({ issuer, subject, client }: Principal): string =>
  `${issuer.length} ${subject.length} ${issuer}${subject}${client}`;
