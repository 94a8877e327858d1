// src/config/access: checks the options for authentication, authorization and certificates, and reads their files.

import type { ApiKey } from '../../auth/api-keys.ts';
import { isLoopback } from '../../auth/origin-rules.ts';
import { type ClientCredentials, credentialHeaders } from '../../protocol/http/client-credentials.ts';
import type { IssueMessage, ReportIssue } from '../issues.ts';
import { configuredCredentials } from '../options/client-credential-options.ts';
import type { GlobalOptions, ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';
import { exchangesTokens } from '../servers/identity-options.ts';
import { type Given, optionLocation } from '../sources/given-values.ts';

/** The options that decide who may use the gateway. */
export type AuthenticationConfig = Pick<
  GlobalOptions,
  'apiKeysFile' | 'authIssuer' | 'proxyIdentityHeader' | 'proxyScopesHeader' | 'trustedProxy'
> & { readonly apiKeys: readonly ApiKey[] };

/** True if the gateway authenticates clients. A key file without keys counts too: it admits nobody. */
export const hasAuthentication = ({
  apiKeysFile,
  apiKeys,
  authIssuer,
  proxyIdentityHeader,
}: AuthenticationConfig): boolean =>
  apiKeysFile !== undefined || apiKeys.length > 0 || authIssuer.length > 0 || proxyIdentityHeader !== undefined;

/**
 * True if clients without authentication may count as one user, while none comes from a public address
 * (`LocalClients`): nothing in the configuration tells of a proxy or of other instances. On a loopback address, another
 * allowed host name tells of a proxy.
 */
export const isOnlyLocal = ({
  host,
  publicUrl,
  allowHost,
  trustedProxy,
  redis,
}: Pick<GlobalOptions, 'host' | 'publicUrl' | 'allowHost' | 'trustedProxy' | 'redis'>): boolean =>
  publicUrl === undefined &&
  redis === undefined &&
  trustedProxy.length === 0 &&
  (!isLoopback(host) || allowHost.every((name) => isLoopback(name)));

/** The location of an option of a server in the configuration, or of the server. */
export type PlaceOfServer = (name: string, key: string) => string;

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
  const { proxyIdentityHeader, proxyScopesHeader, trustedProxy } = authentication;
  if ((proxyIdentityHeader === undefined) !== (trustedProxy.length === 0))
    report(optionLocation(sources, 'proxyIdentityHeader', 'trustedProxy'), (nameOf) =>
      proxyIdentityHeader === undefined
        ? `needs ${nameOf('proxyIdentityHeader')}, the header in which these proxies send the user, such as X-User; set both`
        : `needs ${nameOf('trustedProxy')}, the addresses of the proxies that may send this header, such as 10.0.0.0/8; set both`,
    );
  const atScopes = optionLocation(sources, 'proxyScopesHeader');
  if (proxyScopesHeader !== undefined && proxyIdentityHeader === undefined)
    report(atScopes, (nameOf) => `needs ${nameOf('proxyIdentityHeader')}, the header with the user; set both`);
  if (proxyScopesHeader !== undefined && proxyScopesHeader === proxyIdentityHeader)
    report(atScopes, (nameOf) => `must differ from ${nameOf('proxyIdentityHeader')}; use two different headers`);
  const isAuthenticated = hasAuthentication(authentication);
  for (const server of servers) {
    const { name, auth, forwardHeaders, share } = server;
    const credentials = configuredCredentials(server);
    const fault = credentials && credentialsFault(credentials, isAuthenticated, proxyIdentityHeader);
    if (fault !== undefined) report(placeOf(name, 'credentials'), fault);
    if (isAuthenticated && auth === 'gateway' && forwardHeaders.includes('authorization'))
      report(
        placeOf(name, 'forwardHeaders'),
        (nameOf) =>
          `has authorization in ${nameOf('forwardHeaders')}, but this header contains the client's credentials for the gateway; ${removeAdvice}`,
      );
    if (exchangesTokens(server) && authentication.authIssuer.length === 0)
      report(
        placeOf(name, 'identity'),
        (nameOf) =>
          `has ${nameOf('identity')} token_exchange, which needs ${nameOf('authIssuer')}: the gateway can exchange only access tokens of users`,
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
  proxyIdentityHeader: string | undefined,
): IssueMessage | undefined {
  const headers = credentialHeaders(credentials);
  const hasClaim = [...credentials.parts.values()].flat().some(({ kind }) => kind === 'claim');
  if (hasClaim && !isAuthenticated)
    return (nameOf) =>
      `uses {claim:…}, which needs authentication of clients; set ${nameOf('authIssuer')}, ${nameOf('apiKeysFile')} or ${nameOf('proxyIdentityHeader')}, or remove the claim`;
  if (isAuthenticated && headers.includes('authorization'))
    return (nameOf) =>
      `has authorization in ${nameOf('credentials')}, but this header contains the client's credentials for the gateway; ${removeAdvice}`;
  if (proxyIdentityHeader !== undefined && headers.includes(proxyIdentityHeader.toLowerCase()))
    return (nameOf) =>
      `has the header of ${nameOf('proxyIdentityHeader')} in ${nameOf('credentials')}; use {claim:sub}, the user that the trusted proxy names`;
  return undefined;
}
