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

/** Creates the access that the configurations of a gateway describe, and that to its operator port. */
export class ClientAccess {
  readonly #setup: Pick<GatewaySetup, 'config' | 'features'>;
  readonly #authenticators: readonly Authenticator[];
  readonly #localClients: LocalClients;
  readonly #passthroughTo: PassthroughTo;
  readonly #byToken: CreateTokenAuthenticator | undefined;
  /**
   * Authenticates operators. Credentials for any server of the start are accepted. Undefined without authentication.
   */
  readonly operators: Authenticate | undefined;

  private constructor(
    setup: Pick<GatewaySetup, 'config' | 'features'>,
    authenticators: readonly Authenticator[],
    localClients: LocalClients,
    byToken: CreateTokenAuthenticator | undefined,
  ) {
    this.#setup = setup;
    this.#authenticators = authenticators;
    this.#localClients = localClients;
    this.#passthroughTo = passthroughsOf(setup.features);
    this.#byToken = byToken;
    this.operators = this.#createOperators();
  }

  /**
   * @param authenticators the authenticators for all credentials except access tokens
   * @param localClients identifies all clients if there is no authentication
   * @param secrets what instances share, for the nonces of proofs
   */
  static async create(
    setup: Pick<GatewaySetup, 'config' | 'features'>,
    authenticators: readonly Authenticator[],
    localClients: LocalClients,
    secrets: SharedSecrets,
    logger: Logger,
  ): Promise<ClientAccess> {
    const { config, features } = setup;
    const byToken =
      config.auth.oauth.issuers.length === 0
        ? undefined
        : await needed(features.oauth, '--auth.oauth.issuers').createTokenChecks(config, secrets, logger);
    return new ClientAccess(setup, authenticators, localClients, byToken);
  }

  /**
   * Creates the access for a configuration. A reload can change the servers while the gateway runs.
   * @param config the current configuration, which differs from the one at the start only in its servers
   * @param served all reachable servers, including removed ones that still have sessions
   */
  to(config: GatewayConfig, served: readonly ServerConfig[]): Access {
    const metadata = new Map<string, object>();
    const all = new Map(served.map((server) => [server, this.#accessOf(server, config, metadata)]));
    const of = (server: ServerConfig): ServerAccess => {
      const access = all.get(server);
      if (access === undefined) throw new Error('the server is not in this configuration');
      return access;
    };
    return { of, metadata };
  }

  #createOperators(): Authenticate | undefined {
    const { config } = this.#setup;
    if (!hasAuthentication(config)) return undefined;
    const resources = config.servers.flatMap((server) => [...this.#resourcesOf(server, config).values()]);
    return createAuthenticate({ authenticators: this.#authenticatorsOf(resources) });
  }

  /** The authenticators of those who use these resources. */
  #authenticatorsOf(resources: readonly ProtectedResource[]): readonly Authenticator[] {
    if (this.#byToken === undefined) return this.#authenticators;
    const { audiences } = this.#setup.config.auth.oauth;
    return [...this.#authenticators, this.#byToken(new Set([...audiences, ...resources.map(({ url }) => url)]))];
  }

  /** @param metadata gets the documents about this server */
  #accessOf(server: ServerConfig, config: GatewayConfig, metadata: Map<string, object>): ServerAccess {
    const { filterLists: filtersLists, oauth } = config.auth;
    const rules = new ScopeRules({ requiredScopes: server.scopes.required, toolScopes: server.scopes.tools });
    const passthrough = this.#passthroughTo(config, server);
    if (passthrough !== undefined) {
      const authorization = new Authorization({ rules, resourceMetadata: new Map() });
      return { authenticate: passthrough.authenticate, authorization, passthrough };
    }
    const resources = this.#resourcesOf(server, config);
    this.#describe(resources, server, config, metadata);
    const metadataUrls = [...resources].map(([path, { metadataUrl }]) => [path, metadataUrl] as const);
    const authorization = new Authorization({
      rules,
      resourceMetadata: new Map(metadataUrls),
      scopePrefix: oauth.scopePrefix,
      filtersLists,
    });
    if (!hasAuthentication(config)) return { authenticate: this.#localClients.authenticate, authorization };
    const authenticate = createAuthenticate({
      authenticators: this.#authenticatorsOf([...resources.values()]),
      parametersFor: (incoming) => authorization.parametersFor(incoming),
      requiresProof: this.#byToken !== undefined && oauth.dpop === 'require',
    });
    return { authenticate, authorization };
  }

  /** The protected resources of a server by path; none without an issuer. */
  #resourcesOf(server: ServerConfig, config: GatewayConfig): ReadonlyMap<string, ProtectedResource> {
    const { oauth } = this.#setup.features;
    if (oauth === undefined || this.#byToken === undefined) return new Map();
    const { publicUrl = '' } = config.listen;
    const paths = [...resourcePathsOf(config, server)];
    return new Map(paths.map(([path, resource]) => [path, oauth.resourceAt(publicUrl, resource)]));
  }

  /** Adds the metadata of a server's resources. */
  #describe(
    resources: ReadonlyMap<string, ProtectedResource>,
    { scopes }: ServerConfig,
    config: GatewayConfig,
    metadata: Map<string, object>,
  ): void {
    const { oauth } = this.#setup.features;
    const [first] = resources.values();
    if (oauth === undefined || first === undefined) return;
    const { issuers, scopePrefix, dpop, clientCertificates } = config.auth.oauth;
    const acceptsCertificates = clientCertificates !== undefined;
    const content = { issuers, scopes: scopes.required, scopePrefix, dpop, acceptsCertificates };
    const add = (resource: ProtectedResource, paths: readonly string[]): void => {
      const document = oauth.metadataOf(resource, content);
      // A removed server is served until its sessions end. The newer server of the same path comes first.
      for (const path of paths) if (!metadata.has(path)) metadata.set(path, document);
    };
    for (const resource of resources.values()) add(resource, resource.metadataPaths);
    if (config.servers.length === 1) add(first, [oauth.rootMetadataPath]);
  }
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
