import type { ProviderShape, TokenIssued } from './authorization-server.ts';

/** The gateway's identifiers at a provider, which its operator chooses. */
export interface ProfileContext {
  /** The URL of the gateway's endpoint. */
  readonly endpoint: string;
  /** The URL of the provider without a path. */
  readonly origin: string;
}

/** One provider as its users know it: how it behaves, and the gateway's options that its recipe names. */
export interface ProviderProfile {
  readonly name: string;
  /** The scopes as the provider calls them: needed by all requests, and by the tool `echo`. */
  readonly requested: (context: ProfileContext) => { readonly use: string; readonly read: string };
  readonly shape: (context: ProfileContext) => ProviderShape;
  readonly issuerPath: string;
  /** `secretFile` has `gatewaySecret`: an argument with the secret itself is refused. */
  readonly options: (
    context: ProfileContext & { readonly issuer: string; readonly secretFile: string },
  ) => readonly string[];
  /** The names of the scopes in the configuration, if they differ from those that clients request. */
  readonly configured?: { readonly use: string; readonly read: string };
  /** True if a revoked token ends within `cache`. Otherwise it ends when it expires. */
  readonly endsRevokedTokens: boolean;
  /** True if a client can register itself. */
  readonly registers?: boolean;
}

const applicationId = '6f3c1f4e-27b5-4a55-9d5e-0d9bb1a7c001';
/** The secret of the client `gateway`, which asks the provider about tokens. */
export const gatewaySecret = 'the secret of the gateway at the provider';
const gatewayClient = { client_id: 'gateway', client_secret: gatewaySecret };
const introspection = (value: object): string[] => ['--auth.oauth.introspection', JSON.stringify(value)];
const plain = { use: 'mcp:use', read: 'files:read' };
const google = 'https://www.googleapis.com/auth/';

const withoutStandardClaims = ({ scope: _scope, client_id: _client, ...others }: TokenIssued['payload']) => others;

/**
 * Microsoft Entra ID: no registration; `resource` only if it is the resource of all scopes; scopes of other resources
 * belong to Graph; the names in tokens have no prefix.
 */
const entra = (version: 1 | 2): ProviderProfile => ({
  name: `Entra ID with tokens of version ${version}`,
  issuerPath: '/tenant/v2.0',
  requested: ({ endpoint }) => ({ use: `${endpoint}/Mcp.Use`, read: `${endpoint}/Files.Read` }),
  configured: { use: 'Mcp.Use', read: 'Files.Read' },
  shape: ({ endpoint, origin }) => ({
    audience: endpoint,
    refuse: ({ resource, scopes }) => {
      const own = scopes.filter((scope) => !/^(?:openid|profile|email|offline_access)$/.test(scope));
      if (own.some((scope) => !scope.startsWith(`${endpoint}/`)))
        return 'AADSTS650053: asked for a scope that does not exist on the resource 00000003-0000-0000-c000-000000000000';
      return resource === undefined || resource === endpoint
        ? undefined
        : 'AADSTS9010010: the resource parameter does not match with the requested scopes';
    },
    change: ({ payload, header }) => ({
      header: { ...header, typ: 'JWT' },
      payload: {
        ...withoutStandardClaims(payload),
        scp: String(payload.scope).replaceAll(`${endpoint}/`, ''),
        ...(version === 1
          ? { aud: endpoint, iss: `${origin}/sts/tenant/`, appid: payload.client_id, ver: '1.0' }
          : { aud: applicationId, azp: payload.client_id, ver: '2.0' }),
      },
    }),
    otherIssuer: '/sts/tenant/',
  }),
  options: ({ endpoint, origin }) => [
    ...['--auth.oauth.scopePrefix', `${endpoint}/`, '--auth.oauth.audiences', applicationId],
    ...(version === 1 ? ['--auth.oauth.issuers', `${origin}/sts/tenant/`] : []),
  ],
  endsRevokedTokens: false,
});

/** The providers of docs/recipes/identity-providers.md, as they behaved in November 2026. */
export const providerProfiles: readonly ProviderProfile[] = [
  entra(2),
  entra(1),
  {
    // No registration without an API token; a fixed audience; scopes as a list; groups in a claim.
    name: 'Okta',
    issuerPath: '/oauth2/default',
    requested: () => plain,
    shape: () => ({
      audience: 'api://mcp',
      change: ({ payload, header }) => ({
        header: { ...header, typ: undefined },
        payload: {
          ...withoutStandardClaims(payload),
          ver: 1,
          cid: payload.client_id,
          uid: '00u1',
          scp: String(payload.scope).split(' '),
          groups: ['Everyone', 'MCP Operators'],
        },
      }),
    }),
    options: () => ['--auth.oauth.audiences', 'api://mcp'],
    endsRevokedTokens: false,
  },
  {
    // Opaque tokens without a resource; clients with a secret; its own endpoint for tokens; scopes as URLs.
    name: 'Google',
    issuerPath: '',
    requested: () => ({ use: 'openid', read: `${google}drive.readonly` }),
    shape: () => ({ hasSecretClients: true, tokenInfo: true }),
    options: ({ origin }) => [
      ...introspection({ protocol: 'tokeninfo', url: `${origin}/tokeninfo`, cache: '1s' }),
      ...['--auth.oauth.audiences', 'registered-app'],
    ],
    endsRevokedTokens: true,
  },
  {
    // Registration; `resource` without effect; an audience mapper; roles in a nested claim; introspection of JWTs.
    name: 'Keycloak',
    issuerPath: '/realms/main',
    registers: true,
    requested: () => plain,
    shape: ({ endpoint }) => ({
      audience: endpoint,
      extraClients: [gatewayClient],
      introspectsJwts: true,
      change: ({ payload, header }) => ({
        header: { ...header, typ: 'JWT' },
        payload: {
          ...withoutStandardClaims(payload),
          typ: 'Bearer',
          azp: payload.client_id,
          aud: [endpoint, 'account'],
          scope: payload.scope,
          realm_access: { roles: ['offline_access', 'mcp-user'] },
        },
      }),
    }),
    options: ({ origin, secretFile }) =>
      introspection({
        url: `${origin}/introspect-jwt`,
        tokens: 'all',
        cache: '1s',
        clientId: 'gateway',
        clientSecret: `\${file:${secretFile}}`,
      }),
    endsRevokedTokens: true,
  },
  {
    // Registration; an API whose identifier is the endpoint; two audiences; an issuer with a slash; permissions.
    name: 'Auth0',
    issuerPath: '/',
    registers: true,
    requested: () => plain,
    shape: ({ endpoint, origin }) => ({
      audience: endpoint,
      change: ({ payload, header }) => ({
        header,
        payload: {
          ...withoutStandardClaims(payload),
          azp: payload.client_id,
          aud: [endpoint, `${origin}/userinfo`],
          scope: payload.scope,
          permissions: ['files:read'],
        },
      }),
    }),
    options: () => [],
    endsRevokedTokens: false,
  },
  {
    name: 'a provider with opaque tokens and RFC 7662',
    issuerPath: '/idp',
    registers: true,
    requested: () => plain,
    shape: ({ endpoint }) => ({ audience: endpoint, format: 'opaque', extraClients: [gatewayClient] }),
    options: ({ secretFile }) =>
      introspection({ clientId: 'gateway', clientSecret: `\${file:${secretFile}}`, cache: '1s' }),
    endsRevokedTokens: true,
  },
];
