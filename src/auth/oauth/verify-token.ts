import { decodeJwt, type JWTPayload } from 'jose';
import { type Challenge, printableText, type RefusalDetail } from '../identity.ts';
import type { IssuerKeys } from './issuer-keys.ts';
import { signedClaims } from './signed-claims.ts';
import { type ClaimRules, readBearer, type TokenBearer } from './token-claims.ts';

/** A verified token: the identity of its bearer, and where the token may be used. */
export interface VerifiedToken extends TokenBearer {
  /** Returns true while the token need not be checked again, if it has not expired. */
  isCurrent(): boolean;
}

/** The trusted issuers, and the rules for tokens. */
export interface VerifyOptions extends ClaimRules {
  /** The trusted issuers, by their exact names. */
  readonly issuers: ReadonlyMap<string, IssuerKeys>;
  readonly algorithms: readonly string[];
  /** Returns the time, in milliseconds since 1970. */
  readonly now: () => number;
}

/** The reason why a token was not verified: the token is invalid, or it could not be checked. */
export type TokenFault = Pick<Challenge, 'detail'> & { readonly reason: 'credentials_invalid' | 'token_not_checked' };

/** The fault of a token that could not be checked. */
export const notChecked: TokenFault = { reason: 'token_not_checked' };

/**
 * Longer tokens are refused unread. Verified tokens are kept, so this limit bounds the memory. 1 to 4 KiB are usual.
 */
export const maxTokenLength = 8 * 1024;

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
  if (typeof bearer === 'string') return refused(bearer);
  // The token is valid only while these are the issuer's keys.
  return { ...bearer, isCurrent: () => keys.use() === keySet };
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
