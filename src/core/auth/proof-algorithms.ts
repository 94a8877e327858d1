/**
 * The signature algorithms of proofs, which the metadata and challenges list. All have a public key (RFC 9449, section
 * 4.3): with a shared secret, the gateway could make proofs itself.
 */
export const proofAlgorithms: readonly string[] = [
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'PS256',
  'PS384',
  'PS512',
  'RS256',
  'RS384',
  'RS512',
];
