import type { JWTPayload } from 'jose';
import type { Identity } from '../../../core/auth/identity.ts';
import {
  localScope,
  type ScopeHierarchy,
  splitScopes,
  usualScopeClaims,
  withImplied,
} from '../../../core/auth/scopes/scope-names.ts';
import type { Confirmation } from '../dpop/possession.ts';

/** How the claims of a token become an identity. */
export interface ClaimRules {
  /** How far clocks may differ, in milliseconds. */
  readonly clockSkewMs: number;
  readonly hierarchy: ScopeHierarchy;
  /**
   * The claims that contain scopes. A name with dots, such as `realm_access.roles`, also leads into nested objects.
   */
  readonly scopeClaims: readonly string[];
  /** The text that the issuer puts before the names of this gateway's scopes; see `requestedScope`. */
  readonly scopePrefix?: string | undefined;
}

/** The bearer of a token, and where the token may be used. */
export interface TokenBearer {
  readonly identity: Identity;
  /**
   * The time at which the token expires, in milliseconds since 1970; `Infinity` for never. It includes the tolerance
   * for clock skew.
   */
  readonly expiresAtMs: number;
  /** The resources for which the token was issued (RFC 8707, section 2). */
  readonly audiences: readonly string[];
  /** The keys that the bearer must have; undefined for a token that works without a key. */
  readonly bound: Confirmation | undefined;
}

/** The longest accepted name of a user or client. OpenID Connect Core, section 2, allows 255 characters. */
const maxNameLength = 1_024;

/**
 * The claims that name the client: that of RFC 9068, section 2.2, then older ones of OpenID Connect and large
 * providers.
 */
const clientClaims = ['client_id', 'azp', 'cid', 'appid'];

/** Reads the bearer from trusted claims, or returns the name of an unacceptable claim. */
export function readBearer(claims: JWTPayload, issuer: string, rules: ClaimRules): TokenBearer | 'cnf' | 'sub' {
  const bound = readConfirmation(claims['cnf']);
  if (bound === 'cnf') return 'cnf';
  const subject = readName(claims['sub']);
  if (subject === undefined) return 'sub';
  const expiresAtMs = claims.exp === undefined ? undefined : claims.exp * 1_000 + rules.clockSkewMs;
  const scopes = rules.scopeClaims.flatMap((name) => readScopes(claims, name));
  return {
    identity: {
      principal: { issuer, subject, client: readClient(claims) ?? '' },
      scopes: withImplied(
        scopes.map((scope) => localScope(scope, rules.scopePrefix)),
        rules.hierarchy,
      ),
      expiresAtMs,
      claims,
    },
    expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY,
    audiences: readTexts(claims.aud),
    bound,
  };
}

/** A SHA-256 in base64url. */
const thumbprintForm = /^[A-Za-z0-9_-]{43}$/;

/**
 * Reads the keys to which a token is bound. A token with a binding that is not known here is not usable: a client that
 * shows only the token may have stolen it (RFC 7800, section 3.1).
 */
function readConfirmation(claim: unknown): Confirmation | 'cnf' | undefined {
  if (claim === undefined) return undefined;
  if (typeof claim !== 'object' || claim === null) return 'cnf';
  const { jkt, 'x5t#S256': x5t, ...others } = claim as Readonly<Record<string, unknown>>;
  const thumbprints = [jkt, x5t].filter((each) => each !== undefined);
  const areValid = thumbprints.every((each) => typeof each === 'string' && thumbprintForm.test(each));
  if (!areValid || thumbprints.length === 0 || Object.keys(others).length > 0) return 'cnf';
  return { keyThumbprint: jkt as string | undefined, certificateThumbprint: x5t as string | undefined };
}

/** Reads the client to which a token was issued. */
export const readClient = (claims: JWTPayload): string | undefined =>
  clientClaims.map((key) => readName(claims[key])).find((name) => name !== undefined);

const readName = (claim: unknown): string | undefined =>
  typeof claim === 'string' && claim !== '' && claim.length <= maxNameLength ? claim : undefined;

/** Reads the scopes in one claim: a text, or a list of texts, as some issuers write them. */
function readScopes(claims: JWTPayload, name: string): readonly string[] {
  const texts = readTexts(readClaim(claims, name));
  return usualScopeClaims.includes(name) ? texts.flatMap(splitScopes) : texts;
}

/** Reads a claim by its exact name, such as `https://example.com/roles`, or else by its path. */
function readClaim(claims: JWTPayload, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[part];
  }
  return value;
}

const readTexts = (claim: unknown): readonly string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((each) => typeof each === 'string');
