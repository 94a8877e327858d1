// An OAuth 2.1 authorization server for tests. Every user is `ada`, needs no password, and allows everything. The server must
// therefore never be reachable from a network. Clients register themselves and use PKCE. Access tokens are JWTs for the resource
// that the client requests.
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

const url = new URL(process.argv[2] ?? 'http://127.0.0.1:9400');
const scope = 'demo:use demo:count';
const { privateKey } = await generateKeyPair('RS256', { extractable: true });

const provider = new Provider(url.origin, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'first' }] },
  cookies: { keys: ['only for this example'] },
  scopes: scope.split(' '),
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' },
  findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  ttl: { AccessToken: 600, Grant: 3600, IdToken: 600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, audience) => ({
        scope,
        audience,
        accessTokenTTL: 600,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});

/** Approves every login and consent. Other issuers show a page to the user at this point. */
async function interact(incoming, outgoing) {
  const { prompt, params, session } = await provider.interactionDetails(incoming, outgoing);
  if (prompt.name === 'login') {
    return provider.interactionFinished(incoming, outgoing, { login: { accountId: 'ada' } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (params.scope !== undefined) grant.addOIDCScope(params.scope);
  if (params.resource !== undefined) grant.addResourceScope(params.resource, params.scope ?? '');
  return provider.interactionFinished(incoming, outgoing, { consent: { grantId: await grant.save() } });
}

const callback = provider.callback();
createServer((incoming, outgoing) => {
  if (!incoming.url.startsWith('/interaction/')) return callback(incoming, outgoing);
  interact(incoming, outgoing).catch(() => outgoing.writeHead(400).end());
}).listen(url.port, url.hostname, () => process.stdout.write(`The issuer is ${url.origin}\n`));
