import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

/** The redirect URI to which the authorization server sends the browser with the code. Nothing listens there. */
export const callbackUrl = 'http://127.0.0.1:1/callback';

export const registeredSecret = 'the secret of the registered client';

/** A client that is registered in advance. */
export const registeredClient = {
  client_id: 'registered-app',
  // A native client may listen on any port of a loopback address (RFC 8252, section 7.3).
  redirect_uris: [callbackUrl, 'http://127.0.0.1/oauth/callback', 'http://localhost/oauth/callback'],
};

/** A token that the server is about to sign. */
export interface TokenIssued {
  readonly header: Readonly<Record<string, unknown>>;
  readonly payload: Readonly<Record<string, unknown>> & {
    readonly client_id?: string | undefined;
    readonly scope?: string | undefined;
  };
}

/** What differs from the default server, to behave like a named provider. By default, it honours `resource`. */
export interface ProviderShape {
  /** The audience of all tokens. `resource` has no effect on them. */
  readonly audience?: string;
  readonly format?: 'jwt' | 'opaque';
  /** Changes a token before the server signs it. */
  readonly change?: (token: TokenIssued) => TokenIssued;
  /** Returns the error for an authorization request that this provider refuses. */
  readonly refuse?: (request: {
    readonly resource: string | undefined;
    readonly scopes: readonly string[];
  }) => string | undefined;
  /** The path of a second issuer with the same keys. */
  readonly otherIssuer?: string;
  /** True if clients authenticate with a secret. */
  readonly hasSecretClients?: boolean;
  /** True for the endpoint of Google instead of one of RFC 7662, and opaque tokens without an audience. */
  readonly tokenInfo?: boolean;
  /** True for introspection of JWTs at `/introspect-jwt`, which oidc-provider does not have. */
  readonly introspectsJwts?: boolean;
  /** Clients that only introspect. */
  readonly extraClients?: readonly { readonly client_id: string; readonly client_secret: string }[];
}

export interface ServerOptions {
  readonly shape?: ProviderShape;
  /** The path of the issuer: empty, `/`, or `/realms/main`. */
  readonly issuerPath?: string;
  readonly port?: number;
  readonly registers?: boolean;
}

/** A real OAuth 2.1 authorization server, where every user is `ada` and consents to everything. */
export interface AuthorizationServer {
  /** The issuer. */
  readonly url: string;
  /** The requested scopes of each authorization request. */
  readonly asked: readonly string[];
  /** Logs in and consents like a browser. Resolves with the parameters that the client receives. */
  browse(authorizationUrl: URL): Promise<URLSearchParams>;
  /** Revokes all consents and tokens so far, as a user or an administrator does. */
  revoke(): Promise<void>;
  close(): Promise<void>;
}

/** The lifetime of tokens in seconds. */
const tokenS = 300;

/**
 * Starts an authorization server on a free port: authorization code with PKCE, dynamic registration, JWT access tokens
 * for the named resource.
 * @param scopes the scopes that tokens can have
 */
export async function startAuthorizationServer(
  scopes: string,
  { shape = {}, issuerPath = '', port = 0, registers = true }: ServerOptions = {},
): Promise<AuthorizationServer> {
  const http = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  http.listen(port, '127.0.0.1');
  await once(http, 'listening');
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const url = origin + issuerPath;
  const mount = issuerPath.replace(/\/$/, '');
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'first' };
  const asked: string[] = [];
  const grants = new Set<string>();
  const revoked = new Set<string>();
  /** The payloads and the grants of JWTs by their `jti`. */
  const signed = new Map<unknown, { readonly grantId: string; readonly payload: object }>();
  const isOpaque = shape.format === 'opaque' || shape.tokenInfo === true;

  const provider = new Provider(url, {
    clients: [
      {
        ...registeredClient,
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
        ...(shape.hasSecretClients === true
          ? { client_secret: registeredSecret, token_endpoint_auth_method: 'client_secret_post' }
          : { token_endpoint_auth_method: 'none' }),
      },
      ...(shape.extraClients ?? []).map((client) => ({
        ...client,
        redirect_uris: [],
        grant_types: [],
        response_types: [],
      })),
    ],
    clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
    jwks: { keys: [jwk] },
    cookies: { keys: ['of these tests alone'] },
    scopes: scopes.split(' '),
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    issueRefreshToken: () => true,
    pkce: { required: () => true },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: tokenS, Grant: 600, Interaction: 600, Session: 600, RefreshToken: 600, IdToken: 600 },
    formats: {
      customizers: {
        jwt: (_context: unknown, { grantId }: { grantId: string }, token: TokenIssued) => {
          const changed = shape.change?.(token) ?? token;
          signed.set(changed.payload['jti'], { grantId, payload: changed.payload });
          return changed;
        },
      },
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: registers },
      introspection: { enabled: shape.extraClients !== undefined, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        ...((shape.audience !== undefined || shape.tokenInfo === true) && {
          defaultResource: () => (shape.tokenInfo === true ? undefined : (shape.audience ?? '')),
        }),
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: scopes,
          audience: shape.audience ?? resource,
          accessTokenTTL: tokenS,
          accessTokenFormat: isOpaque ? 'opaque' : 'jwt',
          ...(!isOpaque && { jwt: { sign: { alg: 'RS256' } } }),
        }),
      },
    },
  });
  const callback = provider.callback();
  const respond = (outgoing: ServerResponse, status: number, value: object): void =>
    void outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const at = new URL(incoming.url ?? '', origin);
    if (at.pathname === '/tokeninfo') return tokenInfo(incoming, outgoing);
    if (at.pathname === '/introspect-jwt') return introspectJwt(incoming, outgoing);
    if (shape.otherIssuer !== undefined && at.pathname.startsWith(shape.otherIssuer)) {
      const metadata = { issuer: origin + shape.otherIssuer, jwks_uri: `${origin}${mount}/jwks` };
      return respond(outgoing, 200, metadata);
    }
    if (at.pathname === `${mount}/auth`) {
      const scope = at.searchParams.get('scope') ?? '';
      const resource = at.searchParams.get('resource') ?? undefined;
      const fault = shape.refuse?.({ resource, scopes: scope.split(' ') });
      if (fault !== undefined) return respond(outgoing, 400, { error: 'invalid_target', error_description: fault });
      if (shape.tokenInfo === true) at.searchParams.delete('resource'); // Google does not read it
    }
    if (!at.pathname.startsWith('/interaction/')) {
      // As Express does for a mounted application.
      const path = at.pathname + at.search;
      Object.assign(incoming, { originalUrl: path, url: path.slice(mount.length) || '/' });
      if (!path.startsWith(mount)) return void outgoing.writeHead(404).end();
      if (shape.tokenInfo === true && at.pathname === `${mount}/token`) await dropResource(incoming);
      return callback(incoming, outgoing);
    }
    const { prompt, params, session } = await provider.interactionDetails(incoming, outgoing);
    if (prompt.name === 'login') {
      return provider.interactionFinished(incoming, outgoing, { login: { accountId: 'ada' } });
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params.client_id });
    if (params.scope !== undefined) grant.addOIDCScope(params.scope);
    const resource = params.resource ?? shape.audience;
    if (resource !== undefined) grant.addResourceScope(resource, params.scope ?? '');
    const grantId = await grant.save();
    grants.add(grantId);
    return provider.interactionFinished(incoming, outgoing, { consent: { grantId } });
  };

  const tokenInfo = async ({ headers }: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const token = await provider.AccessToken.find(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '');
    if (token === undefined) return respond(outgoing, 400, { error: 'invalid_token' });
    respond(outgoing, 200, {
      azp: token.clientId,
      aud: token.clientId,
      sub: token.accountId,
      scope: token.scope,
      exp: String(token.exp),
      expires_in: String(tokenS),
    });
  };

  const introspectJwt = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const [client] = shape.extraClients ?? [];
    const basic = new URLSearchParams({ [client?.client_id ?? '']: client?.client_secret ?? '' });
    const expected = Buffer.from(`${basic}`.replace('=', ':')).toString('base64');
    if (incoming.headers.authorization !== `Basic ${expected}`) return respond(outgoing, 401, {});
    const form = new URLSearchParams(Buffer.concat(await incoming.toArray()).toString());
    const known = signed.get(decodeJwt(form.get('token') ?? '').jti);
    const isActive = known !== undefined && !revoked.has(known.grantId);
    respond(outgoing, 200, isActive ? { ...known.payload, active: true } : { active: false });
  };

  return {
    url,
    asked,
    browse: (authorizationUrl) => {
      asked.push(authorizationUrl.searchParams.get('scope') ?? '');
      return browse(authorizationUrl);
    },
    async revoke() {
      for (const grantId of grants) {
        revoked.add(grantId);
        await provider.AccessToken.revokeByGrantId(grantId);
        await provider.RefreshToken.revokeByGrantId(grantId);
        await provider.Grant.adapter.destroy(grantId);
      }
      grants.clear();
    },
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

/** Reads a form without `resource`. oidc-provider takes a body that was read before. */
async function dropResource(incoming: IncomingMessage): Promise<void> {
  const form = new URLSearchParams(Buffer.concat(await incoming.toArray()).toString());
  form.delete('resource');
  Object.assign(incoming, { body: Object.fromEntries(form) });
}

/** Follows redirects with cookies until the redirect URI of the client. */
async function browse(start: URL): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  let at = start;
  for (let page = 0; page < 10; page++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${at.href} was answered with ${response.status}: ${await response.text()}`);
    at = new URL(location, at);
    if (at.origin === start.origin) continue;
    if (!at.searchParams.has('code')) throw new Error(`No code: ${at.search}`);
    if (!at.href.startsWith(callbackUrl)) await (await fetch(at)).text(); // the client listens there
    return at.searchParams;
  }
  throw new Error('too many redirects');
}
