import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

/** The redirect URI to which the authorization server sends the browser with the code. Nothing listens there. */
export const callbackUrl = 'http://127.0.0.1:1/callback';

/** A client that is registered in advance. */
export const registeredClient = { client_id: 'registered-app', redirect_uris: [callbackUrl] };

/** A real OAuth 2.1 authorization server, where every user is `ada` and consents to everything. */
export interface AuthorizationServer {
  readonly url: string;
  /** The requested scopes of each authorization request. */
  readonly asked: readonly string[];
  /** Logs in and consents like a browser. Resolves with the parameters that the client receives. */
  browse(authorizationUrl: URL): Promise<URLSearchParams>;
  close(): Promise<void>;
}

/** The lifetime of tokens in seconds. */
const tokenS = 300;

/**
 * Starts an authorization server on a free port: authorization code with PKCE, dynamic registration, JWT access tokens
 * for the named resource.
 * @param scopes the scopes that tokens can have
 */
export async function startAuthorizationServer(scopes: string): Promise<AuthorizationServer> {
  const http = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const asked: string[] = [];

  const provider = new Provider(url, {
    clients: [
      {
        ...registeredClient,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
    clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'first' }] },
    cookies: { keys: ['of these tests alone'] },
    scopes: scopes.split(' '),
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    issueRefreshToken: () => true,
    pkce: { required: () => true },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: tokenS, Grant: 600, Interaction: 600, Session: 600, RefreshToken: 600, IdToken: 600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, audience: string) => ({
          scope: scopes,
          audience,
          accessTokenTTL: tokenS,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  const callback = provider.callback();

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    if (incoming.url?.startsWith('/interaction/') !== true) return callback(incoming, outgoing);
    const { prompt, params, session } = await provider.interactionDetails(incoming, outgoing);
    if (prompt.name === 'login') {
      return provider.interactionFinished(incoming, outgoing, { login: { accountId: 'ada' } });
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params.client_id });
    if (params.scope !== undefined) grant.addOIDCScope(params.scope);
    if (params.resource !== undefined) grant.addResourceScope(params.resource, params.scope ?? '');
    return provider.interactionFinished(incoming, outgoing, { consent: { grantId: await grant.save() } });
  };

  return {
    url,
    asked,
    browse: (authorizationUrl) => {
      asked.push(authorizationUrl.searchParams.get('scope') ?? '');
      return browse(authorizationUrl);
    },
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
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
    if (!at.href.startsWith(callbackUrl)) continue;
    if (!at.searchParams.has('code')) throw new Error(`No code: ${at.search}`);
    return at.searchParams;
  }
  throw new Error('too many redirects');
}
