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

/**
 * The claims of a token that one of these keys has signed, checked by what is required of them. Never rejects.
 * @param onInvalid told why a token is invalid, by the names of what is wrong alone
 */
export async function signedClaims(
  token: string,
  keyFor: JWTVerifyGetKey,
  required: JWTVerifyOptions,
  onInvalid: (why: string) => void,
): Promise<SignedClaims> {
  const invalid = (why: string): 'invalid' => {
    onInvalid(why);
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
    return invalid('claim' in error ? String(error.claim) : error.code);
  }
}

/** A token that does not name its key is tried with each that could be meant. */
async function claimsByAny(
  token: string,
  keys: errors.JWKSMultipleMatchingKeys,
  required: JWTVerifyOptions,
  onInvalid: (why: string) => void,
): Promise<SignedClaims> {
  for await (const key of keys) {
    const claims = await signedClaims(token, async () => key, required, onInvalid);
    if (claims !== 'unknown_key') return claims;
  }
  return 'unknown_key';
}
