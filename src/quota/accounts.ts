import type { Principal } from '../protocol/principal.ts';
import type { QuotaAccount } from './account.ts';

/** So many accounts are looked through for unused ones at the first time; then whenever their number has doubled. */
const firstSweepAt = 1_000;

/**
 * An account for each principal that has something in use, or had lately: as many as twice that, or as `firstSweepAt`, are
 * kept (P8).
 */
export class QuotaAccounts {
  readonly #byKey = new Map<string, QuotaAccount>();
  /** Requests of one user mostly bring the same object: to look it up costs a tenth of making its key. */
  readonly #found = new WeakMap<Principal, QuotaAccount>();
  readonly #create: (key: string) => QuotaAccount;
  #sweepAt = firstSweepAt;

  /** @param create makes an account for who has none, under a name that is its own */
  constructor(create: (key: string) => QuotaAccount) {
    this.#create = create;
  }

  /** How many there are. */
  get size(): number {
    return this.#byKey.size;
  }

  /** The account of a principal. Ask anew for each use: one that is not in use may be forgotten. */
  of(principal: Principal): QuotaAccount {
    const found = this.#found.get(principal);
    if (found !== undefined && !found.isForgotten) return found;
    const account = this.#lookUp(keyOf(principal));
    this.#found.set(principal, account);
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

/** One text for each principal: the lengths keep the parts apart. */
const keyOf = ({ issuer, subject, client }: Principal): string =>
  `${issuer.length} ${subject.length} ${issuer}${subject}${client}`;
