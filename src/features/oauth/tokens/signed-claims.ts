import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';
import type { RefusalCause } from '../../../core/auth/refusal-causes.ts';

/** The result of verifying a signature: the claims, or the reason why there are none. */
export type SignedClaims =
  | JWTPayload
  /** The token is invalid with any keys. */
  | 'invalid'
  /** None of these keys has signed the token. A newer key may have signed it. */
  | 'unknown_key'
  /** One of the keys is unusable, which is the issuer's fault. */
  | 'unusable_key';

/** The types of a JWT that may be an access token: those of RFC 9068, section 4, and those before it. */
const accessTokenTypes: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt']);

/** Receives the cause that makes a token invalid, and the claims if the signature is valid. */
export type OnInvalid = (why: RefusalCause, claims?: JWTPayload) => void;

/** Verifies that one of these keys has signed a token, and that its claims meet the requirements. Never rejects. */
export async function signedClaims(
  token: string,
  keyFor: JWTVerifyGetKey,
  required: JWTVerifyOptions,
  onInvalid: OnInvalid,
): Promise<SignedClaims> {
  const invalid = (why: RefusalCause, claims?: JWTPayload): 'invalid' => {
    onInvalid(why, claims);
    return 'invalid';
  };
  let namesKey = true;
  try {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      (header, input) => {
        namesKey = header.kid !== undefined;
        return keyFor(header, input);
      },
      required,
    );
    return accessTokenTypes.has(protectedHeader.typ?.toLowerCase()) ? payload : invalid('typ');
  } catch (error) {
    if (error instanceof errors.JWKSMultipleMatchingKeys) return claimsByAny(token, error, required, onInvalid);
    if (error instanceof errors.JWKSNoMatchingKey) return 'unknown_key';
    if (error instanceof errors.JWSSignatureVerificationFailed) return namesKey ? invalid('signature') : 'unknown_key';
    if (error instanceof errors.JWKSInvalid || !(error instanceof errors.JOSEError)) return 'unusable_key';
    if (error instanceof errors.JWTExpired) return invalid('exp', error.payload);
    if (error instanceof errors.JWTClaimValidationFailed) return invalid(causeOf(error.claim), error.payload);
    return invalid(algorithmErrors.has(error.code) ? 'alg' : 'malformed');
  }
}

const algorithmErrors: ReadonlySet<string> = new Set(['ERR_JOSE_ALG_NOT_ALLOWED', 'ERR_JOSE_NOT_SUPPORTED']);

/** The cause for a claim that is missing or has a wrong value. */
function causeOf(claim: string): RefusalCause {
  if (claim === 'exp') return 'no_exp';
  return claim === 'iss' || claim === 'aud' || claim === 'sub' || claim === 'nbf' ? claim : 'claims';
}

/** Tries each matching key for a token that does not name its key. */
async function claimsByAny(
  token: string,
  keys: errors.JWKSMultipleMatchingKeys,
  required: JWTVerifyOptions,
  onInvalid: OnInvalid,
): Promise<SignedClaims> {
  for await (const key of keys) {
    const claims = await signedClaims(token, async () => key, required, onInvalid);
    if (claims !== 'unknown_key') return claims;
  }
  return 'unknown_key';
}
