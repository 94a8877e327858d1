// src/app/access: creates authentication, authorization and quotas from the configuration.

import type { Logger } from 'pino';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { resourcePathsOf } from '../../config/endpoint-paths.ts';
import { type Authenticator, createAuthenticate } from '../../core/auth/authenticate.ts';
import type { Authenticate } from '../../core/auth/identity.ts';
import type { LocalClients } from '../../core/auth/local-clients.ts';
import { Authorization } from '../../core/auth/scopes/authorization.ts';
import { ScopeRules } from '../../core/auth/scopes/scope-rules.ts';
import type { AdmissionOptions } from '../../core/http/pipeline/admission.ts';
import type {
  CreateTokenAuthenticator,
  PassthroughTo,
  ProtectedResource,
  SharedSecrets,
  UpstreamLogin,
} from '../features/access.ts';
import { type Features, type GatewaySetup, needed } from '../features/gateway-features.ts';
import { readServerTls } from '../servers/remote-openers.ts';

type ServerAccess = Pick<AdmissionOptions, 'authenticate' | 'authorization'> & {
  /** Set for a server at which clients authorize themselves. */
  readonly passthrough?: UpstreamLogin | undefined;
};

/** Authentication and authorization for the servers of one configuration. */
export interface Access {
  /** The access to one of these servers. Throws for a server of another configuration. */
  of(server: ServerConfig): ServerAccess;
  /** The OAuth metadata documents by path; empty without an issuer. */
  readonly metadata: ReadonlyMap<string, object>;
}

/**
 * Creates the access for a configuration. A reload can change the servers while the gateway runs.
 * @param now the current configuration, which differs from the one at the start only in its servers
 * @param served all reachable servers, including removed ones that still have sessions
 */
export type AccessTo = (now: GatewayConfig, served: readonly ServerConfig[]) => Access;

/** The access to the servers of a gateway, and to its operator port. */
export interface AllAccess {
  readonly to: AccessTo;
  /**
   * Authenticates operators. Credentials for any server of the start are accepted. Undefined without authentication.
   */
  readonly operators: Authenticate | undefined;
}

/**
 * Creates the access that the configuration describes.
 * @param authenticators the authenticators for all credentials except access tokens
 * @param localClients identifies all clients if there is no authentication
 * @param secrets what instances share, for the nonces of proofs
 */
export async function createAccess(
  { config, features }: Pick<GatewaySetup, 'config' | 'features'>,
  authenticators: readonly Authenticator[],
  localClients: LocalClients,
  secrets: SharedSecrets,
  logger: Logger,
): Promise<AllAccess> {
  const createTokenAuthenticator =
    config.auth.oauth.issuers.length === 0
      ? undefined
      : await needed(features.oauth, '--auth.oauth.issuers').createTokenChecks(config, secrets, logger);
  const passthroughTo = passthroughsOf(features);
  const to: AccessTo = (now, served) =>
    accessTo(now, features, served, authenticators, localClients, passthroughTo, createTokenAuthenticator);
  if (!hasAuthentication(config)) return { to, operators: undefined };
  if (createTokenAuthenticator === undefined) return { to, operators: createAuthenticate({ authenticators }) };
  const resources = config.servers.flatMap((server) => [...resourcesOf(config, features, server).values()]);
  const audiences = new Set([...config.auth.oauth.audiences, ...resources.map(({ url }) => url)]);
  return {
    to,
    operators: createAuthenticate({ authenticators: [...authenticators, createTokenAuthenticator(audiences)] }),
  };
}

function accessTo(
  config: GatewayConfig,
  features: Features,
  served: readonly ServerConfig[],
  authenticators: readonly Authenticator[],
  localClients: LocalClients,
  passthroughTo: PassthroughTo,
  byToken: CreateTokenAuthenticator | undefined,
): Access {
  const { auth, servers } = config;
  const { filterLists: filtersLists } = auth;
  const { issuers, audiences: ownAudiences, scopePrefix, dpop, clientCertificates } = auth.oauth;
  const metadata = new Map<string, object>();
  const describe = (resource: ProtectedResource, { scopes }: ServerConfig, paths: readonly string[]): void => {
    const content = {
      issuers,
      scopes: scopes.required,
      scopePrefix,
      dpop,
      acceptsCertificates: clientCertificates !== undefined,
    };
    const document = features.oauth?.metadataOf(resource, content) ?? {};
    // A removed server is served until its sessions end. The newer server of the same path comes first.
    for (const path of paths) if (!metadata.has(path)) metadata.set(path, document);
  };

  const accessOf = (server: ServerConfig): ServerAccess => {
    const rules = new ScopeRules({ requiredScopes: server.scopes.required, toolScopes: server.scopes.tools });
    const passthrough = passthroughTo(config, server);
    if (passthrough !== undefined) {
      const authorization = new Authorization({ rules, resourceMetadata: new Map() });
      return { authenticate: passthrough.authenticate, authorization, passthrough };
    }
    const resources =
      byToken === undefined ? new Map<string, ProtectedResource>() : resourcesOf(config, features, server);
    for (const resource of resources.values()) describe(resource, server, resource.metadataPaths);
    const [first] = resources.values();
    if (first !== undefined && servers.length === 1)
      describe(first, server, features.oauth === undefined ? [] : [features.oauth.rootMetadataPath]);
    const metadataUrls = [...resources].map(([path, { metadataUrl }]) => [path, metadataUrl] as const);
    const authorization = new Authorization({
      rules,
      resourceMetadata: new Map(metadataUrls),
      scopePrefix,
      filtersLists,
    });
    if (!hasAuthentication(config)) return { authenticate: localClients.authenticate, authorization };
    const audiences = new Set([...ownAudiences, ...[...resources.values()].map(({ url }) => url)]);
    const authenticate = createAuthenticate({
      authenticators: byToken === undefined ? authenticators : [...authenticators, byToken(audiences)],
      parametersFor: (incoming) => authorization.parametersFor(incoming),
      requiresProof: byToken !== undefined && dpop === 'require',
    });
    return { authenticate, authorization };
  };
  const all = new Map(served.map((server) => [server, accessOf(server)]));
  const of = (server: ServerConfig): ServerAccess => {
    const access = all.get(server);
    if (access === undefined) throw new Error('the server is not in this configuration');
    return access;
  };
  return { of, metadata };
}

/** Makes the admissions of servers with `auth: upstream`. */
function passthroughsOf({ oauth, remote }: Features): PassthroughTo {
  const option = '"auth": "upstream" of a server';
  const passthroughTo = oauth?.createPassthroughs({
    createSend: (server, url) => needed(remote, option).createSend(server, url, readServerTls(server)),
    resourcesOf: resourcePathsOf,
  });
  return (config, server) => (server.auth === 'upstream' ? needed(passthroughTo, option)(config, server) : undefined);
}

/** The protected resources of a server by path. */
function resourcesOf(config: GatewayConfig, { oauth }: Features, server: ServerConfig): Map<string, ProtectedResource> {
  const { publicUrl = '' } = config.listen;
  const resources = oauth === undefined ? [] : [...resourcePathsOf(config, server)];
  return new Map(resources.map(([path, resource]) => [path, needed(oauth, 'OAuth').resourceAt(publicUrl, resource)]));
}
