import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';

/** What came of verifying: the claims, or why there are none. */
export type SignedClaims =
  | JWTPayload
  /** The token is wrong, whatever keys there are. */
  | 'invalid'
  /** None of these keys has signed it; a newer one may have. */
  | 'unknown_key'
  /** One of the keys cannot be used: that is the issuer's fault. */
  | 'unusable_key';

/** Types of a JWT that can be an access token: as RFC 9068, section 4, has it, and as it was before. */
const accessTokenTypes: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt']);

/** Told why a token is invalid, by the name of what is wrong, and the claims if its signature is good. */
export type OnInvalid = (why: string, claims?: JWTPayload) => void;

/**
 * The claims of a token that one of these keys has signed, checked by what is required of them. Never rejects.
 */
export async function signedClaims(
  token: string,
  keyFor: JWTVerifyGetKey,
  required: JWTVerifyOptions,
  onInvalid: OnInvalid,
): Promise<SignedClaims> {
  const invalid = (why: string, claims?: JWTPayload): 'invalid' => {
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
    if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed)
      return invalid(error.claim, error.payload);
    return invalid(error.code);
  }
}

/** A token that does not name its key is tried with each that could be meant. */
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
