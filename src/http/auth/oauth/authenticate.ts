import { bearerOf } from '../bearer.ts';
import { type ChallengeOptions, credentialsRequired, invalidToken } from '../challenges.ts';
import type { Authenticate, Challenge, Identity } from '../identity.ts';
import { VerifiedTokens } from './verified-tokens.ts';
import { type TokenFault, type VerifiedToken, type VerifyOptions, verifyToken } from './verify-token.ts';

/** A server to which tokens give access. */
export interface ProtectedServer {
  /** Whom tokens for it are issued for: its endpoints' identifiers, and what is configured beside. */
  readonly audiences: ReadonlySet<string>;
  /** What challenges to a request say. */
  challengeFor(incoming: { readonly url?: string | undefined }): ChallengeOptions;
}

/**
 * Authentication by access tokens, the same tokens for all servers of a gateway, each of which takes only what was issued for
 * it (2026-07-28, basic/authorization, "Token Handling"). A token that was verified before is answered for at once.
 */
export function createTokenAuthentication(options: VerifyOptions): (server: ProtectedServer) => Authenticate {
  const verified = new VerifiedTokens();

  const verify = async (token: string): Promise<VerifiedToken | TokenFault> => {
    const outcome = await verifyToken(token, options);
    if (typeof outcome !== 'string') verified.add(token, outcome);
    return outcome;
  };

  return ({ audiences, challengeFor }) => {
    const judge = (outcome: VerifiedToken | TokenFault, url: string | undefined): Identity | Challenge => {
      if (outcome === 'token_not_checked') return { reason: outcome };
      const isMeant = outcome !== 'invalid_token' && outcome.audiences.some((audience) => audiences.has(audience));
      return isMeant ? outcome.identity : invalidToken(challengeFor({ url }));
    };
    return (incoming) => {
      const { url } = incoming;
      const bearer = bearerOf(incoming);
      if (bearer === undefined) return credentialsRequired(challengeFor({ url }));
      if (bearer === 'other') return invalidToken(challengeFor({ url }));
      const known = verified.find(bearer.token, options.now());
      return known !== undefined ? judge(known, url) : verify(bearer.token).then((outcome) => judge(outcome, url));
    };
  };
}
