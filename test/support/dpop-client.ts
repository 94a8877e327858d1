import { createHash, randomUUID } from 'node:crypto';
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

/** The contents of a proof that differ from those of a correct one. A member with undefined is left out. */
export interface ProofWishes {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** The key that signs; the header still names the client's key. */
  readonly signWith?: CryptoKey | Uint8Array;
}

/** A client with a key of its own, which makes correct proofs and wrong ones (RFC 9449, section 4.2). */
export interface DpopClient {
  readonly thumbprint: string;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
  readonly privateKey: CryptoKey;
  /** Makes a proof for a request with this token. */
  prove(token: string, method: string, url: string, nonce?: string, wishes?: ProofWishes): Promise<string>;
}

const definedOnly = (value: object) =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));

/** Makes a client with a new key. */
export async function makeDpopClient(alg = 'ES256'): Promise<DpopClient> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const [publicJwk, privateJwk] = await Promise.all([exportJWK(publicKey), exportJWK(privateKey)]);
  return {
    thumbprint: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk,
    privateKey,
    prove: (token, htm, htu, nonce, { claims = {}, header = {}, signWith = privateKey } = {}) => {
      const iat = Math.floor(Date.now() / 1_000);
      const ath = createHash('sha256').update(token).digest('base64url');
      return new SignJWT(definedOnly({ jti: randomUUID(), htm, htu, iat, ath, nonce, ...claims }))
        .setProtectedHeader(definedOnly({ typ: 'dpop+jwt', alg, jwk: publicJwk, ...header }) as never)
        .sign(signWith);
    },
  };
}
