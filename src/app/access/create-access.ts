import type { Logger } from 'pino';
import { type Authenticator, createAuthenticate } from '../../auth/authenticate.ts';
import { type Authenticate, noAuthentication } from '../../auth/identity.ts';
import {
  type ProtectedResource,
  protectedResourceAt,
  resourceMetadata,
  rootMetadataPath,
} from '../../auth/oauth/protected-resources.ts';
import { Authorization } from '../../auth/scopes/authorization.ts';
import { ScopeRules } from '../../auth/scopes/scope-rules.ts';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import type { AdmissionOptions } from '../../http/pipeline/admission.ts';
import { detach } from '../../util/boundary.ts';

/** What checks tokens for these audiences. */
type ByToken = (audiences: ReadonlySet<string>) => Authenticator;

type ServerAccess = Pick<AdmissionOptions, 'authenticate' | 'authorization'>;

/** Who may use the servers of a gateway. */
export interface Access {
  /** Who may use one of them. */
  of(server: ServerConfig): ServerAccess;
  /** Where clients learn how to get tokens, by path; empty where there are none to get. */
  readonly metadata: ReadonlyMap<string, object>;
}

/**
 * Access to servers, of which there may be others while the gateway runs.
 * @param now the configuration, of which only the servers may be others than at the start
 * @param served all that are to be reached, also those that are on their way out
 */
export type AccessTo = (now: GatewayConfig, served: readonly ServerConfig[]) => Access;

/** Who may use the servers of a gateway, and who asks at its port for operators. */
export interface AllAccess {
  readonly to: AccessTo;
  /** Of operators: with credentials that are good at any server of the start. Undefined without authentication. */
  readonly operators: Authenticate | undefined;
}

/**
 * Access as it is configured.
 * @param authenticators of other kinds of credentials than access tokens
 */
export async function createAccess(
  config: GatewayConfig,
  authenticators: readonly Authenticator[],
  logger: Logger,
): Promise<AllAccess> {
  const byToken = config.authIssuer.length === 0 ? undefined : await tokenAuthenticators(config, logger);
  const to: AccessTo = (now, served) => accessTo(now, served, authenticators, byToken);
  if (!hasAuthentication(config)) return { to, operators: undefined };
  if (byToken === undefined) return { to, operators: createAuthenticate({ authenticators }) };
  const resources = config.servers.flatMap((server) => [...resourcesOf(config, server).values()]);
  const audiences = new Set([...config.authAudience, ...resources.map(({ url }) => url)]);
  return { to, operators: createAuthenticate({ authenticators: [...authenticators, byToken(audiences)] }) };
}

function accessTo(
  config: GatewayConfig,
  served: readonly ServerConfig[],
  authenticators: readonly Authenticator[],
  byToken: ByToken | undefined,
): Access {
  const { authIssuer, authAudience, servers } = config;
  const metadata = new Map<string, object>();
  const describe = (resource: ProtectedResource, { requiredScopes }: ServerConfig, paths: readonly string[]): void => {
    const document = resourceMetadata(resource, { issuers: authIssuer, scopes: requiredScopes });
    for (const path of paths) metadata.set(path, document);
  };

  const accessOf = (server: ServerConfig): ServerAccess => {
    const rules = new ScopeRules(server);
    const resources = byToken === undefined ? new Map<string, ProtectedResource>() : resourcesOf(config, server);
    for (const resource of resources.values()) describe(resource, server, resource.metadataPaths);
    const [first] = resources.values();
    if (first !== undefined && servers.length === 1) describe(first, server, [rootMetadataPath]);
    const metadataUrls = [...resources].map(([path, { metadataUrl }]) => [path, metadataUrl] as const);
    const authorization = new Authorization({ rules, resourceMetadata: new Map(metadataUrls) });
    if (!hasAuthentication(config)) return { authenticate: noAuthentication, authorization };
    const audiences = new Set([...authAudience, ...[...resources.values()].map(({ url }) => url)]);
    const authenticate = createAuthenticate({
      authenticators: byToken === undefined ? authenticators : [...authenticators, byToken(audiences)],
      parametersFor: (incoming) => authorization.parametersFor(incoming),
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

/** The endpoints of a server by path; to whoever POSTs for a stream of HTTP+SSE, the stream is the resource. */
function resourcesOf(config: GatewayConfig, server: ServerConfig): Map<string, ProtectedResource> {
  const { publicUrl = '' } = config;
  const entries = endpointPathsOf(config, server).flatMap(({ mcp, ws, legacySse: old }) => [
    [mcp, mcp] as const,
    ...(ws === undefined ? [] : [[ws, ws] as const]),
    ...(old === undefined ? [] : [[old.stream, old.stream] as const, [old.messages, old.stream] as const]),
  ]);
  return new Map(entries.map(([path, resource]) => [path, protectedResourceAt(publicUrl, resource)]));
}

/** What checks tokens is loaded only where there are some: without, a start takes less. */
async function tokenAuthenticators(config: GatewayConfig, logger: Logger): Promise<ByToken> {
  const [{ createTokenAuthenticators }, { IssuerKeys }, { fetchJson }, { discoverKeysUrl }] = await Promise.all([
    import('../../auth/oauth/token-authenticator.ts'),
    import('../../auth/oauth/issuer-keys.ts'),
    import('../../auth/oauth/fetch-json.ts'),
    import('../../auth/oauth/issuer-discovery.ts'),
  ]);
  const { authIssuer, authJwksUrl, authAlgorithms, authClockSkewMs, authKeysStaleMs, impliedScopes } = config;
  const keysOf = (issuer: string) => {
    const keys = new IssuerKeys({
      fetchKeys: async () =>
        fetchJson(authJwksUrl === undefined ? await discoverKeysUrl(issuer) : new URL(authJwksUrl)),
      staleMs: authKeysStaleMs,
      now: Date.now,
      onFailed: (err) => logger.warn({ issuer, err }, 'cannot fetch the keys of the token issuer'),
      onRecovered: () => logger.info({ issuer }, 'fetched the keys of the token issuer again'),
    });
    // Ahead of the first token, so that an operator hears at once what is wrong; nobody waits for it.
    detach('background', keys.refresh());
    return keys;
  };
  return createTokenAuthenticators({
    issuers: new Map(authIssuer.map((issuer) => [issuer, keysOf(issuer)])),
    algorithms: authAlgorithms,
    clockSkewMs: authClockSkewMs,
    hierarchy: new Map(Object.entries(impliedScopes)),
    now: Date.now,
  });
}
