import type { ReportIssue } from '../issues.ts';
import type { GlobalOptions, ServerOptions } from '../options/options.ts';
import { firstGiven, type Given, optionLocation } from '../sources/given-values.ts';

type Configured = Pick<GlobalOptions, 'authIssuer' | 'authJwksUrl' | 'publicUrl'> & {
  readonly servers: readonly Pick<ServerOptions, 'requiredScopes' | 'toolScopes'>[];
};

/** Options that suggest that tokens are checked. */
const tokenOptions = ['authAudience', 'authJwksUrl'];

/**
 * Reports options for access tokens and scopes that do not fit together: a rule that nothing enforces protects nothing.
 * @param isAuthenticated true if the gateway authenticates clients
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
  for (const key of tokenOptions) {
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
