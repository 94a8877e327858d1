import type { Report } from './fault.ts';
import { firstGiven, type Given } from './given-values.ts';
import type { GlobalOptions, ServerOptions } from './options.ts';

type Configured = Pick<GlobalOptions, 'authIssuer' | 'authJwksUrl' | 'publicUrl'> & {
  readonly servers: readonly Pick<ServerOptions, 'requiredScopes' | 'toolScopes'>[];
};

/** What looks as if tokens were checked. */
const ofTokens = ['authAudience', 'authJwksUrl'];

/**
 * Reports what of access tokens and scopes does not fit together: a rule that nobody keeps is no protection.
 * @param isAuthenticated the gateway wants to know who sends a request
 */
export function checkAuthorization(
  config: Configured,
  isAuthenticated: boolean,
  sources: readonly Given[],
  report: Report,
): void {
  const at = (key: string): string => firstGiven(sources, key)?.path ?? key;
  const { authIssuer, authJwksUrl, publicUrl, servers } = config;
  if (authIssuer.length > 0) {
    if (publicUrl === undefined) {
      report(
        at('authIssuer'),
        'needs publicUrl: a token must be issued for the URL at which clients reach the gateway',
      );
    }
    if (authIssuer.length > 1 && authJwksUrl !== undefined) {
      report(at('authJwksUrl'), 'is only for a single authIssuer; of several, each must name its keys in its metadata');
    }
    return;
  }
  for (const key of ofTokens) {
    const given = firstGiven(sources, key);
    if (given !== undefined) report(given.path, 'is of no use without authIssuer');
  }
  if (isAuthenticated) return;
  if (servers.some(({ requiredScopes, toolScopes }) => requiredScopes.length + Object.keys(toolScopes).length > 0)) {
    const key = ['requiredScopes', 'toolScopes'].find((each) => firstGiven(sources, each) !== undefined);
    report(
      at(key ?? 'requiredScopes'),
      'asks for scopes, but nobody is asked who they are; give authIssuer, apiKeysFile (--api-keys) or proxyIdentityHeader',
    );
  }
}
