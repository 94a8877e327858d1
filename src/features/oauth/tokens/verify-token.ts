import { decodeJwt, type JWTPayload } from 'jose';
import { type Challenge, printableText, type RefusalDetail } from '../../../core/auth/identity.ts';
import type { RefusalCause } from '../../../core/auth/refusal-causes.ts';
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
  const refused = (why: RefusalCause, claims?: JWTPayload): TokenFault => ({
    reason: 'credentials_invalid',
    detail: explain(why, claims, options),
  });
  let invalid: TokenFault | undefined;
  const onInvalid = (why: RefusalCause, claims?: JWTPayload): void => {
    invalid = refused(why, claims);
  };
  if (token.length > maxTokenLength) return refused('too_long');
  const unverified = readUnverified(token);
  if (unverified === undefined) return refused('malformed');
  const { iss: issuer } = unverified;
  const keys = issuer === undefined ? undefined : options.issuers.get(issuer);
  if (issuer === undefined || keys === undefined) return refused('iss', unverified);
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
function explain(why: RefusalCause, claims: JWTPayload | undefined, { issuers, now }: VerifyOptions): RefusalDetail {
  const { iss, exp } = claims ?? {};
  if (why === 'iss') {
    const expected = [...issuers.keys()];
    return typeof iss === 'string' ? { why, expected, seen: printableText(iss) } : { why, expected };
  }
  if (why === 'exp' && typeof exp === 'number') {
    const seen = formatTime(exp * 1_000);
    return { why, expected: `later than ${formatTime(now())}`, seen };
  }
  return { why };
}

/** Formats a time. A claim may contain a number that is no valid time. */
const formatTime = (ms: number): string | undefined =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined;

/** Reads the claims of a token, which are not verified yet. The keys of the issuer in them then verify the token. */
function readUnverified(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token);
  } catch {
    return undefined; // the token is no JWT
  }
}
