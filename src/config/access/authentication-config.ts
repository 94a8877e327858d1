// src/config/access: checks the options for authentication, authorization and certificates, and reads their files.

import type { ApiKey } from '../../auth/api-keys.ts';
import { isLoopback } from '../../auth/origin-rules.ts';
import { type ClientCredentials, credentialHeaders } from '../../protocol/http/client-credentials.ts';
import type { IssueMessage, ReportIssue } from '../issues.ts';
import { configuredCredentials } from '../options/client-credential-options.ts';
import type { GatewayOptions, OptionPath, ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';
import { exchangesTokens } from '../servers/identity-options.ts';
import { type Given, optionLocation } from '../sources/given-values.ts';

/** The options that decide who may use the gateway. */
export type AuthenticationConfig = Pick<GatewayOptions, 'auth'> & { readonly apiKeys: readonly ApiKey[] };

/** True if the gateway authenticates clients. A key file without keys counts too: it admits nobody. */
export const hasAuthentication = ({ auth, apiKeys }: AuthenticationConfig): boolean =>
  auth.apiKeysFile !== undefined ||
  apiKeys.length > 0 ||
  auth.oauth.issuers.length > 0 ||
  auth.proxy.userHeader !== undefined;

/**
 * True if clients without authentication may count as one user, while none comes from a public address
 * (`LocalClients`): nothing in the configuration tells of a proxy or of other instances. On a loopback address, another
 * allowed host name tells of a proxy.
 */
export const isOnlyLocal = ({ auth, cluster, listen }: Pick<GatewayOptions, 'auth' | 'cluster' | 'listen'>): boolean =>
  listen.publicUrl === undefined &&
  cluster.redis === undefined &&
  auth.proxy.addresses.length === 0 &&
  (!isLoopback(listen.host) || listen.allowedHosts.every((name) => isLoopback(name)));

/** The location of an option of a server in the configuration, or of the server. */
export type PlaceOfServer = (name: string, path: OptionPath) => string;

const placeOfName: PlaceOfServer = (name) => `server ${name}`;

/**
 * Reports authentication options that would not do what they seem to do.
 * @param isLocal see `isOnlyLocal`
 */
export function checkAuthentication(
  authentication: AuthenticationConfig,
  servers: readonly (Pick<ServerOptions, 'auth' | 'forwardHeaders' | 'share' | 'credentials' | 'identity'> & {
    readonly name: string;
    readonly address?: ServerAddress | undefined;
  })[],
  sources: readonly Given[],
  isLocal: boolean,
  report: ReportIssue,
  placeOf: PlaceOfServer = placeOfName,
): void {
  const { userHeader, scopesHeader, addresses } = authentication.auth.proxy;
  if ((userHeader === undefined) !== (addresses.length === 0))
    report(optionLocation(sources, 'auth.proxy.userHeader', 'auth.proxy.addresses'), (nameOf) =>
      userHeader === undefined
        ? `needs ${nameOf('auth.proxy.userHeader')}, the header in which these proxies send the user, such as X-User; set both`
        : `needs ${nameOf('auth.proxy.addresses')}, the addresses of the proxies that may send this header, such as 10.0.0.0/8; set both`,
    );
  const atScopes = optionLocation(sources, 'auth.proxy.scopesHeader');
  if (scopesHeader !== undefined && userHeader === undefined)
    report(atScopes, (nameOf) => `needs ${nameOf('auth.proxy.userHeader')}, the header with the user; set both`);
  if (scopesHeader !== undefined && scopesHeader === userHeader)
    report(atScopes, (nameOf) => `must differ from ${nameOf('auth.proxy.userHeader')}; use two different headers`);
  const isAuthenticated = hasAuthentication(authentication);
  for (const server of servers) {
    const { name, auth, forwardHeaders, share } = server;
    const credentials = configuredCredentials(server);
    const fault = credentials && credentialsFault(credentials, isAuthenticated, userHeader);
    if (fault !== undefined) report(placeOf(name, 'credentials'), fault);
    if (isAuthenticated && auth === 'gateway' && forwardHeaders.includes('authorization'))
      report(
        placeOf(name, 'forwardHeaders'),
        (nameOf) =>
          `has authorization in ${nameOf('forwardHeaders')}, but this header contains the client's credentials for the gateway; ${removeAdvice}`,
      );
    if (exchangesTokens(server) && authentication.auth.oauth.issuers.length === 0)
      report(
        placeOf(name, 'identity'),
        (nameOf) =>
          `has ${nameOf('identity')} token_exchange, which needs ${nameOf('auth.oauth.issuers')}: the gateway can exchange only access tokens of users`,
      );
    // Credentials in variables distinguish clients as well.
    if (!isAuthenticated && share === 'user' && !isLocal && credentials?.as !== 'variables')
      report(
        placeOf(name, 'share'),
        (nameOf) =>
          `has ${nameOf('share')} user, which needs authentication, or a gateway that only this machine can reach: otherwise the gateway cannot tell users apart`,
      );
  }
}

const removeAdvice = 'remove authorization, because these credentials must not reach a server';

/** The fault in the client credentials of a server, given how clients authenticate. */
function credentialsFault(
  credentials: ClientCredentials,
  isAuthenticated: boolean,
  userHeader: string | undefined,
): IssueMessage | undefined {
  const headers = credentialHeaders(credentials);
  const hasClaim = [...credentials.parts.values()].flat().some(({ kind }) => kind === 'claim');
  if (hasClaim && !isAuthenticated)
    return (nameOf) =>
      `uses {claim:…}, which needs authentication of clients; set ${nameOf('auth.oauth.issuers')}, ${nameOf('auth.apiKeysFile')} or ${nameOf('auth.proxy.userHeader')}, or remove the claim`;
  if (isAuthenticated && headers.includes('authorization'))
    return (nameOf) =>
      `has authorization in ${nameOf('credentials')}, but this header contains the client's credentials for the gateway; ${removeAdvice}`;
  if (userHeader !== undefined && headers.includes(userHeader.toLowerCase()))
    return (nameOf) =>
      `has the header of ${nameOf('auth.proxy.userHeader')} in ${nameOf('credentials')}; use {claim:sub}, the user that the trusted proxy names`;
  return undefined;
}
