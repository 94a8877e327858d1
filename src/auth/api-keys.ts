import { hash } from 'node:crypto';
import type { Authenticator } from './authenticate.ts';
import type { Identity } from './identity.ts';
import { type ScopeHierarchy, withImplied } from './scopes/scope-hierarchy.ts';

/** A key that clients may show, without the key. */
export interface ApiKey {
  /** Who shows it. Several keys may have the same one: then one can take the place of the other. */
  readonly name: string;
  /** SHA-256 of the key, in hexadecimal. */
  readonly sha256: string;
  /** When it ends, in milliseconds since 1970; absent for never. */
  readonly expiresAtMs?: number | undefined;
  /** What it allows; absent for everything. */
  readonly scopes?: readonly string[] | undefined;
}

/** As what keys are issued: no token has an issuer that is no URL. */
const issuer = 'api-key';

/** How a key is stored; see `ApiKey.sha256`. */
export const digestOfKey = (key: string): string => hash('sha256', key, 'hex');

/** An identity whose end its keeper can bring nearer. */
type Lasting = { -readonly [K in keyof Identity]: Identity[K] };

/**
 * The API keys of a gateway (docs/decisions/0032). A key is looked up by its hash, so that neither a comparison nor the time
 * that it takes tells anything of a key: nobody can choose what a hash begins with.
 */
export class ApiKeys {
  #known = new Map<string, { readonly key: ApiKey; readonly identity: Lasting }>();

  readonly #hierarchy: ScopeHierarchy | undefined;

  /** @param hierarchy which scopes stand for others */
  constructor(keys: readonly ApiKey[], hierarchy?: ScopeHierarchy) {
    this.#hierarchy = hierarchy;
    this.replace(keys);
  }

  /** Replaces all keys. What is no more, or is not what it was, ends for those who showed it. */
  replace(keys: readonly ApiKey[]): void {
    const earlier = this.#known;
    this.#known = new Map(
      keys.map((key) => {
        const same = earlier.get(key.sha256);
        return [
          key.sha256,
          same !== undefined && isSame(same.key, key) ? same : { key, identity: identityOf(key, this.#hierarchy) },
        ];
      }),
    );
    const lasting = new Set([...this.#known.values()].map(({ identity }) => identity));
    for (const { identity } of earlier.values()) if (!lasting.has(identity)) identity.expiresAtMs = 0;
  }

  /** Who shows a key. A token of another kind, such as one of an authorization server, is no key. */
  readonly authenticator: Authenticator = (_incoming, token) => {
    const known = token === undefined ? undefined : this.#known.get(token.sha256);
    if (known === undefined) return undefined;
    const { key, identity } = known;
    if (identity.expiresAtMs === undefined || identity.expiresAtMs > Date.now()) return identity;
    const seen = { name: key.name, expired: new Date(identity.expiresAtMs).toISOString() };
    return { reason: 'credentials_invalid', detail: { why: 'expired key', seen, description: 'The key has expired' } };
  };
}

const isSame = (a: ApiKey, b: ApiKey): boolean => JSON.stringify(partsOf(a)) === JSON.stringify(partsOf(b));

const partsOf = ({ name, expiresAtMs, scopes }: ApiKey) => [name, expiresAtMs ?? null, scopes ?? null];

const identityOf = ({ name, expiresAtMs, scopes }: ApiKey, hierarchy?: ScopeHierarchy): Lasting => ({
  principal: { issuer, subject: name, client: '' },
  scopes: scopes && withImplied(scopes, hierarchy),
  expiresAtMs,
  claims: {},
});
