// src/features/oauth/tokens: access tokens of OAuth authorization servers, and the metadata of the gateway as their resource.
import type { IncomingMessage } from 'node:http';
import { decodeJwt } from 'jose';
import type { Authenticator } from '../../../core/auth/authenticate.ts';
import type { BearerToken } from '../../../core/auth/bearer-token.ts';
import { type Challenge, type Identity, printableText } from '../../../core/auth/identity.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import type { CheckPossession } from '../dpop/possession.ts';
import type { TokenIntrospection } from './introspection.ts';
import {
  maxTokenLength,
  type TokenFault,
  type VerifiedToken,
  type VerifyOptions,
  verifyToken,
} from './verify-token.ts';

/** The tokens that are checked by asking their issuer. */
export interface IntrospectedTokens {
  readonly by: TokenIntrospection;
  /** The issuer that is asked. */
  readonly issuer: string;
  /** True if the issuer is asked about its JWTs too, which then end as soon as they are revoked. */
  readonly areAll: boolean;
}

/** How many audiences of a token are shown in the log. */
const maxShownAudiences = 5;

/**
 * Makes authenticators for access tokens. All servers of a gateway share the verified tokens, but each server accepts
 * only tokens issued for it (2026-07-28, basic/authorization, "Token Handling"). The answer for a token that was
 * verified before comes at once. Every bearer token is taken for an access token, so authenticators of other kinds must
 * come first.
 */
export function createTokenAuthenticators(
  options: VerifyOptions,
  checkPossession: CheckPossession,
  introspected?: IntrospectedTokens,
): (audiences: ReadonlySet<string>) => Authenticator {
  const verified = new VerifiedTokens();

  const verify = async (token: BearerToken): Promise<VerifiedToken | TokenFault> => {
    if (introspected !== undefined && !isJwt(token)) return introspected.by.check(token);
    const outcome = await verifyToken(token.text, options);
    if ('reason' in outcome) return outcome;
    const { principal, claims } = outcome.identity;
    if (introspected?.areAll === true && principal.issuer === introspected.issuer)
      return introspected.by.check(token, claims);
    verified.add(token, outcome);
    return outcome;
  };

  const find = (token: BearerToken): VerifiedToken | TokenFault | undefined =>
    verified.find(token, options.now()) ?? introspected?.by.find(token);

  return (audiences) => {
    const judge = (
      outcome: VerifiedToken | TokenFault,
      token: BearerToken,
      incoming: IncomingMessage,
    ): Identity | Challenge | Promise<Identity | Challenge> => {
      if ('reason' in outcome) return outcome;
      const isForThisServer = outcome.audiences.some((audience) => audiences.has(audience));
      if (isForThisServer) {
        const refusal = checkPossession(outcome.bound, token, incoming);
        return refusal instanceof Promise
          ? refusal.then((resolved) => resolved ?? outcome.identity)
          : (refusal ?? outcome.identity);
      }
      const seen = outcome.audiences.slice(0, maxShownAudiences).map(printableText);
      return { reason: 'credentials_invalid', detail: { why: 'aud', expected: [...audiences], seen } };
    };
    return (incoming, token) => {
      if (token === undefined) return undefined;
      const known = find(token);
      return known === undefined
        ? verify(token).then((outcome) => judge(outcome, token, incoming))
        : judge(known, token, incoming);
    };
  };
}

/** True for a token whose claims can be read. Only its issuer can read any other token. */
function isJwt({ text }: BearerToken): boolean {
  if (text.length > maxTokenLength) return true; // `verifyToken` refuses it unread
  try {
    decodeJwt(text);
    return true;
  } catch {
    return false;
  }
}

/** How many tokens are remembered, each of at most 8 KiB, however many users there are. */
const maxTokens = 4_096;

/**
 * Verified tokens by their SHA-256, so that the next request with the same token needs no check of a signature. The
 * least recently used token is dropped first.
 */
export class VerifiedTokens {
  readonly #byHash = new BoundedMap<string, VerifiedToken>(maxTokens);

  /** Finds a verified token that is still valid: it has not expired, and its issuer has the same keys. */
  find({ sha256: key }: BearerToken, nowMs: number): VerifiedToken | undefined {
    const known = this.#byHash.get(key);
    if (known === undefined) return undefined;
    if (nowMs >= known.expiresAtMs || !known.isCurrent()) {
      this.#byHash.delete(key);
      return undefined;
    }
    this.#byHash.set(key, known); // the newest one now
    return known;
  }

  add({ sha256 }: BearerToken, verified: VerifiedToken): void {
    this.#byHash.set(sha256, verified);
  }
}
