import { decodeJwt, type JWTPayload } from 'jose';
import { type Challenge, type Identity, printableText, type RefusalDetail } from '../identity.ts';
import { type ScopeHierarchy, splitScopes, withImplied } from '../scopes/scope-hierarchy.ts';
import type { IssuerKeys, KeySet } from './issuer-keys.ts';
import { signedClaims } from './signed-claims.ts';

/** A verified token: the identity of its bearer, and where the token may be used. */
export interface VerifiedToken {
  readonly identity: Identity;
  /** The time at which the token expires, in milliseconds since 1970. It includes the tolerance for clock skew. */
  readonly expiresAtMs: number;
  /** The resources for which the token was issued (RFC 8707, section 2). */
  readonly audiences: readonly string[];
  readonly issuer: IssuerKeys;
  /** The keys that verified the token. The token is valid only while these are the issuer's keys. */
  readonly keys: KeySet;
}

/** The trusted issuers, and the rules for tokens. */
export interface VerifyOptions {
  /** The trusted issuers, by their exact names. */
  readonly issuers: ReadonlyMap<string, IssuerKeys>;
  readonly algorithms: readonly string[];
  /** How far clocks may differ, in milliseconds. */
  readonly clockSkewMs: number;
  readonly hierarchy: ScopeHierarchy;
  /** Returns the time, in milliseconds since 1970. */
  readonly now: () => number;
}

/** The reason why a token was not verified: the token is invalid, or it could not be checked. */
export type TokenFault = Pick<Challenge, 'detail'> & { readonly reason: 'credentials_invalid' | 'token_not_checked' };

const notChecked: TokenFault = { reason: 'token_not_checked' };

/**
 * Longer tokens are refused unread. Verified tokens are kept, so this limit bounds the memory. 1 to 4 KiB are usual.
 */
export const maxTokenLength = 8 * 1024;

/** The longest accepted name of a user or client. OpenID Connect Core, section 2, allows 255 characters. */
const maxNameLength = 1_024;

/**
 * The claims that name the client: that of RFC 9068, section 2.2, then older ones of OpenID Connect and large
 * providers.
 */
const clientClaims = ['client_id', 'azp', 'cid', 'appid'];

/**
 * Verifies a JWT access token (RFC 9068, section 4; OAuth 2.1, section 5.2): issuer, signature, expiry, type and
 * subject. The caller has to check the audiences; see `VerifiedToken.audiences`. Never rejects.
 */
export async function verifyToken(token: string, options: VerifyOptions): Promise<VerifiedToken | TokenFault> {
  const { algorithms, clockSkewMs, now } = options;
  const refused = (why: string, claims?: JWTPayload): TokenFault => ({
    reason: 'credentials_invalid',
    detail: explain(why, claims, options),
  });
  let invalid: TokenFault | undefined;
  const onInvalid = (why: string, claims?: JWTPayload): void => {
    invalid = refused(why, claims);
  };
  const issuer = readIssuer(token);
  const keys = issuer === undefined ? undefined : options.issuers.get(issuer);
  if (issuer === undefined || keys === undefined)
    return refused('iss', issuer === undefined ? undefined : { iss: issuer });
  const required = {
    issuer,
    algorithms: [...algorithms],
    clockTolerance: clockSkewMs / 1_000,
    currentDate: new Date(now()),
    requiredClaims: ['exp', 'sub', 'aud'],
  };

  let keySet = keys.use() ?? (await keys.refresh());
  if (keySet === undefined) return notChecked;
  let claims = await signedClaims(token, keySet.keyFor, required, onInvalid);
  if (claims === 'unknown_key') {
    // The issuer may have a new key (OpenID Connect Core, section 10.1.1).
    const newer = await keys.refresh();
    if (newer === undefined || keys.isFailing) return notChecked;
    if (newer === keySet) return refused('kid');
    keySet = newer;
    claims = await signedClaims(token, keySet.keyFor, required, onInvalid);
  }
  if (claims === 'unusable_key') return notChecked;
  if (claims === 'unknown_key') return refused('kid');
  if (claims === 'invalid') return invalid ?? refused('signature');
  const bearer = readBearer(claims, issuer, options);
  return typeof bearer === 'string' ? refused(bearer) : { ...bearer, issuer: keys, keys: keySet };
}

/**
 * Explains why a token is invalid. Issuer, audience and times are no secrets; nothing else of a token is shown (P12).
 */
function explain(why: string, claims: JWTPayload | undefined, { issuers, now }: VerifyOptions): RefusalDetail {
  const { iss, exp } = claims ?? {};
  if (why === 'iss') {
    const expected = [...issuers.keys()];
    if (typeof iss !== 'string') return { why, expected };
    const description = 'The issuer of the access token is not trusted here';
    return { why, expected, seen: printableText(iss), description };
  }
  if (why === 'exp' && typeof exp === 'number') {
    const seen = formatTime(exp * 1_000);
    return { why, expected: `later than ${formatTime(now())}`, seen, description: 'The access token has expired' };
  }
  if (why === 'nbf') return { why, description: 'The access token is not valid yet' };
  return { why };
}

/** Formats a time. A claim may contain a number that is no valid time. */
const formatTime = (ms: number): string | undefined =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined;

/** Reads the issuer that a token names, which is not verified yet. The issuer's keys then verify the token. */
function readIssuer(token: string): string | undefined {
  if (token.length > maxTokenLength) return undefined;
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined; // the token is no JWT
  }
}

/** Reads the bearer from verified claims, or returns the name of an unacceptable claim. */
function readBearer(
  claims: JWTPayload,
  issuer: string,
  { clockSkewMs, hierarchy }: VerifyOptions,
): Pick<VerifiedToken, 'identity' | 'expiresAtMs' | 'audiences'> | 'cnf' | 'sub' {
  // The token is bound to a key (RFC 7800). A client that shows only the token may have stolen it.
  if (claims['cnf'] !== undefined) return 'cnf';
  const subject = readName(claims['sub']);
  if (subject === undefined) return 'sub';
  const client = clientClaims.map((key) => readName(claims[key])).find((name) => name !== undefined) ?? '';
  const expiresAtMs = (claims.exp as number) * 1_000 + clockSkewMs;
  return {
    identity: {
      principal: { issuer, subject, client },
      scopes: withImplied([...readScopes(claims['scope']), ...readScopes(claims['scp'])], hierarchy),
      expiresAtMs,
      claims,
    },
    expiresAtMs,
    audiences: readTexts(claims.aud),
  };
}

const readName = (claim: unknown): string | undefined =>
  typeof claim === 'string' && claim !== '' && claim.length <= maxNameLength ? claim : undefined;

/** Reads scopes from one text, as in RFC 8693, section 4.2, or from a list, as some issuers write them. */
const readScopes = (claim: unknown): readonly string[] => readTexts(claim).flatMap(splitScopes);

const readTexts = (claim: unknown): readonly string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((each) => typeof each === 'string');
