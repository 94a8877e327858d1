// src/auth/oauth: access tokens of OAuth authorization servers, and the metadata of the gateway as their resource.
import type { IncomingMessage } from 'node:http';
import { decodeJwt } from 'jose';
import type { Authenticator } from '../authenticate.ts';
import type { BearerToken } from '../bearer-token.ts';
import type { CheckPossession } from '../dpop/possession.ts';
import { type Challenge, type Identity, printableText } from '../identity.ts';
import type { TokenIntrospection } from './introspection.ts';
import { VerifiedTokens } from './verified-tokens.ts';
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
