import { decodeJwt, type JWTPayload } from 'jose';
import { type Challenge, type Identity, printableText, type RefusalDetail } from '../identity.ts';
import { type ScopeHierarchy, splitScopes, withImplied } from '../scopes/scope-hierarchy.ts';
import type { IssuerKeys, KeySet } from './issuer-keys.ts';
import { signedClaims } from './signed-claims.ts';

/** A token that was proven: who its bearer is, and where it may be used. */
export interface VerifiedToken {
  readonly identity: Identity;
  /** When it ends, the tolerance for clocks added, in milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** Whom it was issued for (RFC 8707, section 2). */
  readonly audiences: readonly string[];
  readonly issuer: IssuerKeys;
  /** By which it was verified: it holds as long as these are the issuer's. */
  readonly keys: KeySet;
}

/** What verifying needs. */
export interface VerifyOptions {
  /** The issuers that are trusted, by their exact names. */
  readonly issuers: ReadonlyMap<string, IssuerKeys>;
  readonly algorithms: readonly string[];
  /** How far clocks may be apart, in milliseconds. */
  readonly clockSkewMs: number;
  readonly hierarchy: ScopeHierarchy;
  /** The time, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Why there is no proof: the token is none that holds here, or it could not be found out. */
export type TokenFault = Pick<Challenge, 'detail'> & { readonly reason: 'credentials_invalid' | 'token_not_checked' };

const notChecked: TokenFault = { reason: 'token_not_checked' };

/** Longer tokens are refused unread: what is verified is kept, so that this bounds the memory. Usual are 1 to 4 KiB. */
export const maxTokenLength = 8 * 1024;

/** The longest name of a user or client that is taken; OpenID Connect Core, section 2, allows 255. */
const maxNameLength = 1_024;

/** Where issuers name the client: RFC 9068, section 2.2, then the ways of OpenID Connect and of large providers before it. */
const clientClaims = ['client_id', 'azp', 'cid', 'appid'];

/**
 * Verifies a JWT access token (RFC 9068, section 4; OAuth 2.1, section 5.2): issuer, signature, expiry, type and subject. For
 * whom it was issued is told, not judged: see `VerifiedToken.audiences`. Never rejects.
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
  const issuer = issuerOf(token);
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

  let used = keys.current ?? (await keys.refresh());
  if (used === undefined) return notChecked;
  let claims = await signedClaims(token, used.keyFor, required, onInvalid);
  if (claims === 'unknown_key') {
    // It may be a new one (OpenID Connect Core, section 10.1.1).
    const newer = await keys.refresh();
    if (newer === undefined || keys.isFailing) return notChecked;
    if (newer === used) return refused('kid');
    used = newer;
    claims = await signedClaims(token, used.keyFor, required, onInvalid);
  }
  if (claims === 'unusable_key') return notChecked;
  if (claims === 'unknown_key') return refused('kid');
  if (claims === 'invalid') return invalid ?? refused('signature');
  const bearer = bearerIn(claims, issuer, options);
  return typeof bearer === 'string' ? refused(bearer) : { ...bearer, issuer: keys, keys: used };
}

/** What is wrong with a token. Issuer, audience and times are no secrets; nothing else of it is told (P12). */
function explain(why: string, claims: JWTPayload | undefined, { issuers, now }: VerifyOptions): RefusalDetail {
  const { iss, exp } = claims ?? {};
  if (why === 'iss') {
    const expected = [...issuers.keys()];
    if (typeof iss !== 'string') return { why, expected };
    const description = 'The issuer of the access token is not trusted here';
    return { why, expected, seen: printableText(iss), description };
  }
  if (why === 'exp' && typeof exp === 'number') {
    const seen = timeText(exp * 1_000);
    return { why, expected: `later than ${timeText(now())}`, seen, description: 'The access token has expired' };
  }
  if (why === 'nbf') return { why, description: 'The access token is not valid yet' };
  return { why };
}

/** A time of a claim can be no time. */
const timeText = (ms: number): string | undefined => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined);

/** Whom a token names as its issuer, not yet proven: by whose keys it is to be verified. */
function issuerOf(token: string): string | undefined {
  if (token.length > maxTokenLength) return undefined;
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined; // what is no JWT has no issuer
  }
}

/** What verified claims say; or which of them is not as it has to be. */
function bearerIn(
  claims: JWTPayload,
  issuer: string,
  { clockSkewMs, hierarchy }: VerifyOptions,
): Pick<VerifiedToken, 'identity' | 'expiresAtMs' | 'audiences'> | 'cnf' | 'sub' {
  // Bound to a key (RFC 7800): whoever has only the token may have stolen it.
  if (claims['cnf'] !== undefined) return 'cnf';
  const subject = nameIn(claims['sub']);
  if (subject === undefined) return 'sub';
  const client = clientClaims.map((key) => nameIn(claims[key])).find((name) => name !== undefined) ?? '';
  const expiresAtMs = (claims.exp as number) * 1_000 + clockSkewMs;
  return {
    identity: {
      principal: { issuer, subject, client },
      scopes: withImplied([...scopesIn(claims['scope']), ...scopesIn(claims['scp'])], hierarchy),
      expiresAtMs,
      claims,
    },
    expiresAtMs,
    audiences: textsIn(claims.aud),
  };
}

const nameIn = (claim: unknown): string | undefined =>
  typeof claim === 'string' && claim !== '' && claim.length <= maxNameLength ? claim : undefined;

/** RFC 8693, section 4.2, has one text; others write a list. */
const scopesIn = (claim: unknown): readonly string[] => textsIn(claim).flatMap(splitScopes);

const textsIn = (claim: unknown): readonly string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((each) => typeof each === 'string');
