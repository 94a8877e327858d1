import type { ReportIssue } from '../issues.ts';
import type { GlobalOptions, ServerOptions } from '../options/options.ts';
import { firstGiven, type Given, optionLocation } from '../sources/given-values.ts';

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
  report: ReportIssue,
): void {
  const { authIssuer, authJwksUrl, publicUrl, servers } = config;
  if (authIssuer.length > 0) {
    if (publicUrl === undefined) {
      report(
        optionLocation(sources, 'authIssuer'),
        (nameOf) => `needs ${nameOf('publicUrl')}: the gateway accepts only tokens for its own URL`,
      );
    }
    if (authIssuer.length > 1 && authJwksUrl !== undefined) {
      report(
        optionLocation(sources, 'authJwksUrl'),
        (nameOf) =>
          `is only for a single ${nameOf('authIssuer')}; with several, the metadata of each issuer must name its keys`,
      );
    }
    return;
  }
  for (const key of ofTokens) {
    const given = firstGiven(sources, key);
    if (given !== undefined) report(given.path, (nameOf) => `has no effect without ${nameOf('authIssuer')}`);
  }
  if (isAuthenticated) return;
  if (servers.some(({ requiredScopes, toolScopes }) => requiredScopes.length + Object.keys(toolScopes).length > 0)) {
    report(
      optionLocation(sources, 'requiredScopes', 'toolScopes'),
      (nameOf) =>
        `requires scopes, which need authentication; set ${nameOf('authIssuer')}, ${nameOf('apiKeysFile')} or ${nameOf('proxyIdentityHeader')}`,
    );
  }
}
