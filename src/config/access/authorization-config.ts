import { isLoopback } from '../../auth/origin-rules.ts';
import type { ReportIssue } from '../issues.ts';
import { isDefault } from '../options/option-kinds.ts';
import { type GlobalOptions, globalOptions, type ServerOptions } from '../options/options.ts';
import { firstGiven, type Given, optionLocation } from '../sources/given-values.ts';
import type { PlaceOfServer } from './authentication-config.ts';

type Configured = Pick<
  GlobalOptions,
  | 'authClientCa'
  | 'authClientCertificates'
  | 'authIntrospection'
  | 'authIssuer'
  | 'authJwksUrl'
  | 'host'
  | 'publicUrl'
  | 'serverCards'
  | 'tlsCert'
> & {
  readonly servers: readonly (Pick<ServerOptions, 'auth' | 'requiredScopes' | 'toolScopes'> & {
    readonly name: string;
  })[];
};

/** Options that suggest that tokens are checked. */
const tokenOptions = [
  'authAudience',
  'authJwksUrl',
  'authIntrospection',
  'authScopeClaims',
  'authScopePrefix',
  'authDpop',
  'authClientCertificates',
] as const;

/**
 * Reports options for access tokens and scopes that do not fit together: a rule that nothing enforces protects nothing.
 * @param isAuthenticated true if the gateway authenticates clients
 */
export function checkAuthorization(
  config: Configured,
  isAuthenticated: boolean,
  sources: readonly Given[],
  report: ReportIssue,
  placeOf: PlaceOfServer = (_name, key) => optionLocation(sources, key),
): void {
  const { authIssuer, authIntrospection, authJwksUrl, host, publicUrl, serverCards, servers } = config;
  const passing = servers.find(({ auth }) => auth === 'upstream');
  if (publicUrl === undefined && !isLoopback(host) && passing !== undefined)
    report(
      placeOf(passing.name, 'auth'),
      (nameOf) =>
        `upstream needs ${nameOf('publicUrl')} if the gateway listens on other addresses than 127.0.0.1: clients read the gateway's URL in its metadata; set ${nameOf('publicUrl')} to this URL, such as https://gateway.example.com`,
    );
  if (serverCards === 'public' && publicUrl === undefined)
    report(
      optionLocation(sources, 'serverCards'),
      (nameOf) =>
        `public needs ${nameOf('publicUrl')}: the cards contain the gateway's URL, which must not come from a client's Host header`,
    );
  const { authClientCa, authClientCertificates, tlsCert } = config;
  if (authClientCertificates && tlsCert === undefined)
    report(
      optionLocation(sources, 'authClientCertificates'),
      (nameOf) =>
        `needs ${nameOf('tlsCert')}: clients show their certificates where TLS ends, so TLS must end at the gateway`,
    );
  if (authClientCa !== undefined && !authClientCertificates)
    report(
      optionLocation(sources, 'authClientCa'),
      (nameOf) => `has no effect without ${nameOf('authClientCertificates')}`,
    );
  if (authIssuer.length > 0) {
    if (publicUrl === undefined) {
      report(
        optionLocation(sources, 'authIssuer'),
        (nameOf) =>
          `needs ${nameOf('publicUrl')}: the gateway accepts only tokens for its own URL; set ${nameOf('publicUrl')} to a URL such as https://mcp.example.com`,
      );
    }
    if (authIssuer.length > 1 && authJwksUrl !== undefined) {
      report(
        optionLocation(sources, 'authJwksUrl'),
        (nameOf) =>
          `is only for a single ${nameOf('authIssuer')}; with several, the metadata of each issuer must name its keys`,
      );
    }
    const introspected = authIntrospection?.issuer ?? (authIssuer.length === 1 ? authIssuer[0] : undefined);
    if (authIntrospection !== undefined && (introspected === undefined || !authIssuer.includes(introspected))) {
      report(
        optionLocation(sources, 'authIntrospection'),
        (nameOf) =>
          `must have an issuer that is one of ${nameOf('authIssuer')}, so that the gateway knows whose tokens it asks about`,
      );
    }
    return;
  }
  for (const key of tokenOptions) {
    const given = firstGiven(sources, key);
    // `config print` shows defaults too, and what it prints is a valid file.
    const { [key]: value }: Partial<GlobalOptions> = config;
    if (given !== undefined && !isDefault(globalOptions[key], value))
      report(given.path, (nameOf) => `has no effect without ${nameOf('authIssuer')}; set both, or remove this option`);
  }
  if (isAuthenticated) return;
  const scoped = servers.find(
    ({ requiredScopes, toolScopes }) => requiredScopes.length + Object.keys(toolScopes).length > 0,
  );
  if (scoped !== undefined) {
    report(
      placeOf(scoped.name, scoped.requiredScopes.length > 0 ? 'requiredScopes' : 'toolScopes'),
      (nameOf) =>
        `requires scopes, which need authentication; set ${nameOf('authIssuer')}, ${nameOf('apiKeysFile')} or ${nameOf('proxyIdentityHeader')}`,
    );
  }
}
