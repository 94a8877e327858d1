import type { Authenticator } from '../authenticate.ts';
import type { BearerToken } from '../bearer.ts';
import type { Challenge, Identity } from '../identity.ts';
import { VerifiedTokens } from './verified-tokens.ts';
import { type TokenFault, type VerifiedToken, type VerifyOptions, verifyToken } from './verify-token.ts';

/**
 * Access tokens as credentials, the same for all servers of a gateway, each of which takes only what was issued for it
 * (2026-07-28, basic/authorization, "Token Handling"). A token that was verified before is answered for at once. Whatever is
 * shown is taken for a token, so other kinds come first.
 */
export function createTokenAuthenticators(options: VerifyOptions): (audiences: ReadonlySet<string>) => Authenticator {
  const verified = new VerifiedTokens();

  const verify = async (token: BearerToken): Promise<VerifiedToken | TokenFault> => {
    const outcome = await verifyToken(token.text, options);
    if (typeof outcome !== 'string') verified.add(token, outcome);
    return outcome;
  };

  return (audiences) => {
    const judge = (outcome: VerifiedToken | TokenFault): Identity | Challenge => {
      if (typeof outcome === 'string') return { reason: outcome };
      const isMeant = outcome.audiences.some((audience) => audiences.has(audience));
      if (isMeant) return outcome.identity;
      options.onRefused('aud');
      return { reason: 'credentials_invalid' };
    };
    return (_incoming, token) => {
      if (token === undefined) return undefined;
      const known = verified.find(token, options.now());
      return known === undefined ? verify(token).then(judge) : judge(known);
    };
  };
}
