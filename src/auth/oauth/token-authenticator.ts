import type { Authenticator } from '../authenticate.ts';
import type { BearerToken } from '../bearer-token.ts';
import { type Challenge, type Identity, printableText } from '../identity.ts';
import { VerifiedTokens } from './verified-tokens.ts';
import { type TokenFault, type VerifiedToken, type VerifyOptions, verifyToken } from './verify-token.ts';

/** More audiences of a token are not told. */
const maxShownAudiences = 5;

/**
 * Access tokens as credentials, the same for all servers of a gateway, each of which takes only what was issued for it
 * (2026-07-28, basic/authorization, "Token Handling"). A token that was verified before is answered for at once. Whatever is
 * shown is taken for a token, so other kinds come first.
 */
export function createTokenAuthenticators(options: VerifyOptions): (audiences: ReadonlySet<string>) => Authenticator {
  const verified = new VerifiedTokens();

  const verify = async (token: BearerToken): Promise<VerifiedToken | TokenFault> => {
    const outcome = await verifyToken(token.text, options);
    if (!('reason' in outcome)) verified.add(token, outcome);
    return outcome;
  };

  return (audiences) => {
    const judge = (outcome: VerifiedToken | TokenFault): Identity | Challenge => {
      if ('reason' in outcome) return outcome;
      const isMeant = outcome.audiences.some((audience) => audiences.has(audience));
      if (isMeant) return outcome.identity;
      const seen = outcome.audiences.slice(0, maxShownAudiences).map(printableText);
      const description = 'The access token was issued for another resource';
      return { reason: 'credentials_invalid', detail: { why: 'aud', expected: [...audiences], seen, description } };
    };
    return (_incoming, token) => {
      if (token === undefined) return undefined;
      const known = verified.find(token, options.now());
      return known === undefined ? verify(token).then(judge) : judge(known);
    };
  };
}
