import type { IncomingMessage } from 'node:http';

/**
 * Formats the `WWW-Authenticate` header of a refusal (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9449, section
 * 7.1).
 */
export const challengeHeader = (
  error: string | undefined,
  parameters: readonly string[] = [],
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): string =>
  `${scheme} ${['realm="mcp-gangway"', ...(error === undefined ? [] : [`error="${error}"`]), ...parameters].join(', ')}`;

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

const nextNonces = new WeakMap<IncomingMessage, string>();

/** Sets the nonce for the client's next proof, which the response to this request carries. */
export const setNextNonce = (incoming: IncomingMessage, nonce: string): void => {
  nextNonces.set(incoming, nonce);
};

/** Returns the nonce that the response to a request must carry in `DPoP-Nonce` (RFC 9449, section 8.1), if any. */
export const nextNonceOf = (incoming: IncomingMessage): string | undefined => nextNonces.get(incoming);
