/**
 * Why credentials are refused, each with the `error_description` for the client (RFC 6750, section 3). The names appear
 * in logs and metrics. A description never contains a part of the credentials (P12), and needs no escapes in a header.
 */
export const refusalCauses = {
  no_bearer: 'The Authorization header contains no Bearer token',
  unknown_key: 'The key is not valid here',
  expired_key: 'The key has expired',
  malformed: 'The credential is neither a known key nor an access token that can be read here',
  too_long: 'The access token is longer than 8 KiB',
  iss: 'The issuer of the access token is not trusted here',
  aud: 'The access token was issued for another resource',
  exp: 'The access token has expired',
  no_exp: 'The access token has no valid expiry time',
  nbf: 'The access token is not valid yet',
  kid: 'The access token is signed with a key that its issuer does not have',
  signature: 'The signature of the access token is not valid',
  alg: 'The access token is signed with an algorithm that is not accepted here',
  typ: 'The JWT is not an access token',
  sub: 'The access token has no valid subject',
  claims: 'A claim of the access token is not valid',
  cnf: 'The access token is bound to a key in a way that is not supported here',
  inactive: 'The access token is unknown, has expired or was revoked',
  not_bound: 'The access token is not bound to a key as DPoP requires',
  bearer_of_bound: 'The access token is bound to a key and needs the scheme DPoP with a proof',
  certificate: 'The access token is bound to another client certificate',
  proof_missing: 'The request has no DPoP proof',
  proof_malformed: 'The DPoP header is not exactly one valid proof',
  proof_key: 'The DPoP proof has another key than the access token',
  proof_signature: 'The signature of the DPoP proof is not valid',
  proof_request: 'The DPoP proof is for another method or URL',
  proof_token: 'The DPoP proof is for another access token',
  proof_time: 'The DPoP proof is too old or from the future',
  proof_nonce: 'The DPoP proof needs the nonce in the header of this response',
  proof_replayed: 'The DPoP proof was used before',
} as const;

/** A cause for which credentials are refused. */
export type RefusalCause = keyof typeof refusalCauses;

/** True for a cause of the catalogue; false for a refused `Host` or `Origin`. */
export const isRefusalCause = (text: string): text is RefusalCause => Object.hasOwn(refusalCauses, text);
