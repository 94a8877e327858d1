import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from 'jose';
import { proofAlgorithms } from '../../../core/auth/challenges.ts';
import type { RefusalCause } from '../../../core/auth/refusal-causes.ts';

/** What a proof must be for (RFC 9449, section 4.3). */
export interface ExpectedProof {
  /** The thumbprint of the key to which the access token is bound. */
  readonly thumbprint: string;
  readonly method: string;
  /** The URL at which clients reach the endpoint, without a query. */
  readonly url: string;
  /** The SHA-256 of the access token in hexadecimal. */
  readonly tokenSha256: string;
  /** The time, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** A proof whose signature and contents are valid. Its nonce and its first use remain to be checked. */
export interface ValidProof {
  readonly jti: string;
  /** Undefined if the proof has none. */
  readonly nonce: string | undefined;
}

/** A longer proof is refused unread (P8). A proof with an RSA key of 4,096 bits has 2 KiB. */
const maxProofLength = 4 * 1024;

/** A longer name of a proof is refused. A UUID has 36 characters (RFC 9449, section 4.2). */
const maxNameLength = 256;

/**
 * How far the client's clock may differ. The nonce limits the age of a proof far more, so clocks of desktops may be
 * wrong by minutes.
 */
const maxClockDifferenceMs = 5 * 60_000;

/** Members of private and symmetric keys (RFC 7518, section 6). */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/**
 * Verifies a DPoP proof, except for its nonce and its first use. The key is compared before the signature, so that only
 * the owner of an access token can make the gateway verify signatures. Never rejects.
 */
export async function verifyProof(text: string, expected: ExpectedProof): Promise<ValidProof | RefusalCause> {
  if (text.length > maxProofLength) return 'proof_malformed';
  try {
    const { jwk } = decodeProtectedHeader(text);
    if (jwk === undefined || privateMembers.some((name) => Object.hasOwn(jwk, name))) return 'proof_malformed';
    if ((await calculateJwkThumbprint(jwk)) !== expected.thumbprint) return 'proof_key';
    const { payload } = await jwtVerify(text, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: [...proofAlgorithms],
      currentDate: new Date(expected.nowMs),
    });
    return readProof(payload, expected);
  } catch (error) {
    if (error instanceof errors.JWTExpired) return 'proof_time';
    if (error instanceof errors.JWSSignatureVerificationFailed) return 'proof_signature';
    return 'proof_malformed';
  }
}

function readProof(claims: JWTPayload, expected: ExpectedProof): ValidProof | RefusalCause {
  const { htm, htu, ath, nonce, jti, iat } = claims as Readonly<Record<string, unknown>>;
  if (typeof jti !== 'string' || jti === '' || jti.length > maxNameLength) return 'proof_malformed';
  if (typeof iat !== 'number') return 'proof_malformed';
  if (htm !== expected.method || typeof htu !== 'string' || targetOf(htu) !== targetOf(expected.url))
    return 'proof_request';
  if (ath !== Buffer.from(expected.tokenSha256, 'hex').toString('base64url')) return 'proof_token';
  if (Math.abs(iat * 1_000 - expected.nowMs) > maxClockDifferenceMs) return 'proof_time';
  return { jti, nonce: typeof nonce === 'string' ? nonce : undefined };
}

/**
 * Normalises a target URI (RFC 9449, section 4.3, step 9). The handshake of a WebSocket is a request to an http(s) URL
 * (RFC 6455, section 1.7), but clients know only the ws(s) URL.
 */
function targetOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text.replace(/^ws(s?):/i, 'http$1:'));
  return url.origin === 'null' ? undefined : url.origin + url.pathname;
}
