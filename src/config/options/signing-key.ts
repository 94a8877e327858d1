import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { parseOwn } from '../../core/protocol/json.ts';

/** A private key as a JSON Web Key. */
export interface PrivateJwk extends JsonWebKey {
  readonly kid?: string;
  readonly alg?: string;
}

/**
 * Reads a private key in PEM or as a JWK, and chooses the algorithm of its signatures. Throws an error without contents
 * for a text that is no such key.
 */
export function readSigningKey(text: string): { readonly jwk: PrivateJwk; readonly algorithm: string } {
  const isJwk = text.trimStart().startsWith('{');
  const given = isJwk ? (parseOwn(text) as PrivateJwk) : undefined;
  const key = createPrivateKey(given === undefined ? text : { key: given, format: 'jwk' });
  const jwk = { ...(key.export({ format: 'jwk' }) as PrivateJwk), ...(given?.kid !== undefined && { kid: given.kid }) };
  const algorithm = given?.alg ?? algorithmOf(jwk);
  if (algorithm === undefined) throw new Error('no algorithm for this kind of key');
  return { jwk, algorithm };
}

const curves: ReadonlyMap<string | undefined, string> = new Map([
  ['P-256', 'ES256'],
  ['P-384', 'ES384'],
  ['P-521', 'ES512'],
  ['Ed25519', 'EdDSA'],
]);

const algorithmOf = ({ kty, crv }: PrivateJwk): string | undefined => (kty === 'RSA' ? 'RS256' : curves.get(crv));
