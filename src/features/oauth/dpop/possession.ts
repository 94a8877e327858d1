// src/features/oauth/dpop: access tokens that are bound to a key: DPoP proofs (RFC 9449) and client certificates (RFC 8705).
import { createHash, hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { BearerToken } from '../../../core/auth/bearer-token.ts';
import { setNextNonce } from '../../../core/auth/challenges.ts';
import type { Challenge } from '../../../core/auth/identity.ts';
import type { RefusalCause } from '../../../core/auth/refusal-causes.ts';
import { pathOf } from '../../../core/protocol/http/request-header.ts';
import { instanceSkewMs, type KnownNonce, type NonceKeys, nonceLifetimeMs, ProofNonces } from './nonces.ts';
import { verifyProof } from './proof.ts';
import { type SharedProofs, UsedProofs } from './used-proofs.ts';

/** The keys to which a token is bound (RFC 7800, section 3.1). */
export interface Confirmation {
  /** The thumbprint of a key (`jkt`, RFC 9449, section 6.1). */
  readonly keyThumbprint?: string | undefined;
  /** The thumbprint of a client certificate (`x5t#S256`, RFC 8705, section 3.1). */
  readonly certificateThumbprint?: string | undefined;
}

/**
 * Checks that the sender of a request has the keys to which its token is bound. Returns a challenge if not. Answers at
 * once for a token that is not bound to a key. Never rejects.
 */
export type CheckPossession = (
  bound: Confirmation | undefined,
  token: BearerToken,
  incoming: IncomingMessage,
) => Challenge | undefined | Promise<Challenge | undefined>;

/** The rules for bound tokens, and what instances share. */
export interface PossessionOptions {
  /** `off` refuses bound tokens, and `require` refuses all others. */
  readonly dpop: 'off' | 'accept' | 'require';
  /** How client certificates are checked; undefined if the gateway does not request any. */
  readonly certificates: { readonly mustBeTrusted: boolean } | undefined;
  /** The URL at which clients reach the gateway, without a slash at the end. */
  readonly publicUrl: string;
  readonly nonceKeys: NonceKeys;
  /** The proofs that other instances have accepted; undefined for a single instance. */
  readonly shared: SharedProofs | undefined;
  /** Returns the time, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Makes the check. All endpoints of a gateway share its memory of used proofs. */
export function createPossessionCheck(options: PossessionOptions): CheckPossession {
  const { dpop, certificates, publicUrl, now, shared } = options;
  const nonces = new ProofNonces(options.nonceKeys, now);
  const used = new UsedProofs();

  /** Returns the time since which the store remembers all uses; undefined if other instances cannot know of them. */
  const sharedSinceMs = (): number | undefined => {
    const healthyMs = (shared?.healthyForMs() ?? 0) - instanceSkewMs;
    return healthyMs > 0 ? now() - healthyMs : undefined;
  };

  /** Sends the next nonce with the response, and asks for a proof with it. */
  const askForNonce = async (
    incoming: IncomingMessage,
    isShared = sharedSinceMs() !== undefined,
  ): Promise<Challenge> => {
    const nonce = await nonces.make(isShared);
    if (nonce === undefined) return { reason: 'store_unavailable' };
    setNextNonce(incoming, nonce);
    return { reason: 'dpop_nonce_required', dpopError: 'use_dpop_nonce', detail: { why: 'proof_nonce' } };
  };

  /** Notes the first use of a proof, or returns the challenge. */
  const use = async (name: string, nonce: KnownNonce, incoming: IncomingMessage): Promise<Challenge | undefined> => {
    if (nonce.isShared) {
      const sinceMs = sharedSinceMs();
      if (sinceMs !== undefined && nonce.madeAtMs <= sinceMs) return askForNonce(incoming);
      const leftMs = nonce.madeAtMs + nonceLifetimeMs + instanceSkewMs - now();
      const isFirst = sinceMs === undefined ? undefined : await shared?.use(name, leftMs);
      // Without the store, another instance could have accepted the proof. This instance remembers those with its own
      // nonces.
      if (isFirst === undefined) return askForNonce(incoming, false);
      return isFirst ? undefined : refuse('proof_replayed');
    }
    if (!used.remembers(nonce.madeAtMs)) return askForNonce(incoming);
    return used.use(name, nonce.madeAtMs, now()) ? undefined : refuse('proof_replayed');
  };

  const checkProof = async (
    thumbprint: string,
    token: BearerToken,
    incoming: IncomingMessage,
  ): Promise<Challenge | undefined> => {
    const text = incoming.headers['dpop'];
    if (text === undefined) return refuse('proof_missing');
    const url = publicUrl + pathOf(incoming.url ?? '');
    const { method = '' } = incoming;
    const expected = { thumbprint, method, url, tokenSha256: token.sha256, nowMs: now() };
    const proof = await verifyProof(String(text), expected);
    if (typeof proof === 'string') return refuse(proof, proof === 'proof_request' ? `${method} ${url}` : undefined);
    const nonce = proof.nonce === undefined ? undefined : await nonces.find(proof.nonce);
    if (nonce === undefined) return askForNonce(incoming);
    const refusal = await use(hash('sha256', `${thumbprint} ${proof.jti}`, 'base64url'), nonce, incoming);
    if (refusal === undefined && nonces.isAging(nonce)) {
      const next = await nonces.make(sharedSinceMs() !== undefined);
      if (next !== undefined) setNextNonce(incoming, next);
    }
    return refusal;
  };

  return (bound, token, incoming) => {
    if (dpop === 'off' && token.scheme === 'DPoP')
      return { reason: 'credentials_invalid', detail: { why: 'no_bearer' } };
    const { keyThumbprint, certificateThumbprint } = bound ?? {};
    if (certificateThumbprint !== undefined) {
      if (certificates === undefined) return { reason: 'credentials_invalid', detail: { why: 'cnf' } };
      if (!hasCertificate(incoming.socket, certificateThumbprint, certificates.mustBeTrusted))
        return { reason: 'credentials_invalid', detail: { why: 'certificate' } };
    }
    if (keyThumbprint === undefined) {
      // A client that sends a proof relies on it, so a token that anybody could use is refused.
      return token.scheme === 'DPoP' || dpop === 'require' ? refuse('not_bound') : undefined;
    }
    if (dpop === 'off') return { reason: 'credentials_invalid', detail: { why: 'cnf' } };
    if (token.scheme !== 'DPoP') return refuse('bearer_of_bound'); // RFC 9449, section 7.2
    return checkProof(keyThumbprint, token, incoming);
  };
}

/** Faults of the token, and not of its proof. */
const tokenFaults: ReadonlySet<RefusalCause> = new Set(['not_bound', 'bearer_of_bound']);

const refuse = (why: RefusalCause, expected?: string): Challenge => ({
  reason: 'credentials_invalid',
  dpopError: tokenFaults.has(why) ? 'invalid_token' : 'invalid_dpop_proof',
  detail: { why, ...(expected !== undefined && { expected }) },
});

/** The thumbprint of each connection's client certificate; undefined for a connection without one. */
const thumbprints = new WeakMap<Socket, string | undefined>();

/**
 * True if the client of a TLS connection has the certificate with this thumbprint (RFC 8705, section 3). The handshake
 * has proved that the client has its key.
 * @param mustBeTrusted true if the certificate must come from the operator's certificate authority
 */
function hasCertificate(socket: Socket, thumbprint: string, mustBeTrusted: boolean): boolean {
  if (!(socket instanceof TLSSocket) || (mustBeTrusted && !socket.authorized)) return false;
  if (!thumbprints.has(socket)) thumbprints.set(socket, readThumbprint(socket));
  return thumbprints.get(socket) === thumbprint;
}

function readThumbprint(socket: TLSSocket): string | undefined {
  const certificate = socket.getPeerX509Certificate();
  return certificate && createHash('sha256').update(certificate.raw).digest('base64url');
}
