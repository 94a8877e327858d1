import { hash } from 'node:crypto';
import type { Authenticator } from './authenticate.ts';
import type { Identity } from './identity.ts';
import { type ScopeHierarchy, withImplied } from './scopes/scope-names.ts';

/** The configuration of an API key, which contains only the hash of the key. */
export interface ApiKey {
  /** The user who has the key. Several keys may have the same name, so that a new key can replace an old one. */
  readonly name: string;
  /** The SHA-256 of the key, in hexadecimal. */
  readonly sha256: string;
  /** The time at which the key expires, in milliseconds since 1970; absent for never. */
  readonly expiresAtMs?: number | undefined;
  /** The scopes of the key; absent if it allows everything. */
  readonly scopes?: readonly string[] | undefined;
}

/** The issuer of API keys. No token can have it, since the issuer of a token is a URL. */
const issuer = 'api-key';

/** Returns the stored form of a key; see `ApiKey.sha256`. */
export const digestOfKey = (key: string): string => hash('sha256', key, 'hex');

/** An identity that can be made to expire earlier. */
type MutableIdentity = { -readonly [K in keyof Identity]: Identity[K] };

/**
 * The API keys of a gateway (docs/decisions/0032). A key is looked up by its hash. Nobody can choose the beginning of a
 * hash, so the time of the lookup reveals nothing about a key.
 */
export class ApiKeys {
  #known = new Map<string, { readonly key: ApiKey; readonly identity: MutableIdentity }>();

  readonly #hierarchy: ScopeHierarchy | undefined;

  /** @param hierarchy the scopes that imply others */
  constructor(keys: readonly ApiKey[], hierarchy?: ScopeHierarchy) {
    this.#hierarchy = hierarchy;
    this.replace(keys);
  }

  /** Replaces all keys. The credentials of removed and changed keys expire at once. */
  replace(keys: readonly ApiKey[]): void {
    const earlier = this.#known;
    this.#known = new Map(
      keys.map((key) => {
        const same = earlier.get(key.sha256);
        return [
          key.sha256,
          same !== undefined && isSame(same.key, key) ? same : { key, identity: createIdentity(key, this.#hierarchy) },
        ];
      }),
    );
    const kept = new Set([...this.#known.values()].map(({ identity }) => identity));
    for (const { identity } of earlier.values()) if (!kept.has(identity)) identity.expiresAtMs = 0;
  }

  /** Identifies the user by an API key. Returns undefined for other tokens, such as one of an authorization server. */
  readonly authenticator: Authenticator = (_incoming, token) => {
    const known = token?.scheme === 'Bearer' ? this.#known.get(token.sha256) : undefined;
    if (known === undefined) return undefined;
    const { key, identity } = known;
    if (identity.expiresAtMs === undefined || identity.expiresAtMs > Date.now()) return identity;
    const seen = { name: key.name, expired: new Date(identity.expiresAtMs).toISOString() };
    return { reason: 'credentials_invalid', detail: { why: 'expired_key', seen } };
  };
}

const isSame = (a: ApiKey, b: ApiKey): boolean => JSON.stringify(partsOf(a)) === JSON.stringify(partsOf(b));

const partsOf = ({ name, expiresAtMs, scopes }: ApiKey) => [name, expiresAtMs ?? null, scopes ?? null];

const createIdentity = ({ name, expiresAtMs, scopes }: ApiKey, hierarchy?: ScopeHierarchy): MutableIdentity => ({
  principal: { issuer, subject: name, client: '' },
  scopes: scopes && withImplied(scopes, hierarchy),
  expiresAtMs,
  claims: {},
});
