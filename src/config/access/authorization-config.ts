import { isLoopback } from '../../auth/origin-rules.ts';
import type { ReportIssue } from '../issues.ts';
import { isDefault } from '../options/option-kinds.ts';
import { type GatewayOptions, gatewayLeaves, type ServerOptions } from '../options/options.ts';
import { firstGiven, type Given, optionLocation } from '../sources/given-values.ts';
import { leafValue } from '../tree/branch.ts';
import type { PlaceOfServer } from './authentication-config.ts';

type Configured = Pick<GatewayOptions, 'auth' | 'listen'> & {
  readonly servers: readonly (Pick<ServerOptions, 'auth' | 'scopes'> & {
    readonly name: string;
  })[];
};

/** Options that suggest that tokens are checked. */
const tokenOptions = [
  'auth.oauth.audiences',
  'auth.oauth.introspection',
  'auth.oauth.scopeClaims',
  'auth.oauth.scopePrefix',
  'auth.oauth.dpop',
  'auth.oauth.clientCertificates',
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
  const { auth, listen, servers } = config;
  const { issuers, introspection, clientCertificates } = auth.oauth;
  const { host, publicUrl, serverCards } = listen;
  const passing = servers.find((server) => server.auth === 'upstream');
  if (publicUrl === undefined && !isLoopback(host) && passing !== undefined)
    report(
      placeOf(passing.name, 'auth'),
      (nameOf) =>
        `upstream needs ${nameOf('listen.publicUrl')} if the gateway listens on other addresses than 127.0.0.1: clients read the gateway's URL in its metadata; set ${nameOf('listen.publicUrl')} to this URL, such as https://gateway.example.com`,
    );
  if (serverCards === 'public' && publicUrl === undefined)
    report(
      optionLocation(sources, 'listen.serverCards'),
      (nameOf) =>
        `public needs ${nameOf('listen.publicUrl')}: the cards contain the gateway's URL, which must not come from a client's Host header`,
    );
  if (clientCertificates !== undefined && listen.tls.cert === undefined)
    report(
      optionLocation(sources, 'auth.oauth.clientCertificates'),
      (nameOf) =>
        `needs ${nameOf('listen.tls.cert')}: clients show their certificates where TLS ends, so TLS must end at the gateway`,
    );
  if (issuers.length > 0) {
    if (publicUrl === undefined) {
      report(
        optionLocation(sources, 'auth.oauth.issuers'),
        (nameOf) =>
          `needs ${nameOf('listen.publicUrl')}: the gateway accepts only tokens for its own URL; set ${nameOf('listen.publicUrl')} to a URL such as https://mcp.example.com`,
      );
    }
    const introspected = introspection?.issuer ?? (issuers.length === 1 ? issuers[0] : undefined);
    if (introspection !== undefined && (introspected === undefined || !issuers.includes(introspected))) {
      report(
        optionLocation(sources, 'auth.oauth.introspection'),
        (nameOf) =>
          `must have an issuer that is one of ${nameOf('auth.oauth.issuers')}, so that the gateway knows whose tokens it asks about`,
      );
    }
    return;
  }
  for (const path of tokenOptions) {
    const given = firstGiven(sources, path);
    const option = gatewayLeaves.get(path);
    // `config print` shows defaults too, and what it prints is a valid file.
    if (given !== undefined && option && !isDefault(option, leafValue(config, path, option)))
      report(
        given.path,
        (nameOf) => `has no effect without ${nameOf('auth.oauth.issuers')}; set both, or remove this option`,
      );
  }
  if (isAuthenticated) return;
  const scoped = servers.find(({ scopes }) => scopes.required.length + Object.keys(scopes.tools).length > 0);
  if (scoped !== undefined) {
    report(
      placeOf(scoped.name, scoped.scopes.required.length > 0 ? 'scopes.required' : 'scopes.tools'),
      (nameOf) =>
        `requires scopes, which need authentication; set ${nameOf('auth.oauth.issuers')}, ${nameOf('auth.apiKeysFile')} or ${nameOf('auth.proxy.userHeader')}`,
    );
  }
}
