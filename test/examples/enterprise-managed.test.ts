import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import {
  Client,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { post } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { blocksOf } from './page.ts';

const page = 'docs/recipes/enterprise-managed.md';
const idJagType = 'urn:ietf:params:oauth:token-type:id-jag';
const bearerGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Makes an issuer answer token requests. */
function answerTokens(issuer: Issuer, answer: (request: URLSearchParams) => Promise<object | undefined>): void {
  const metadata = {
    issuer: issuer.url,
    jwks_uri: `${issuer.url}/keys`,
    token_endpoint: `${issuer.url}/token`,
    authorization_endpoint: `${issuer.url}/authorize`,
    response_types_supported: ['code'],
    grant_types_supported: [bearerGrant],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  };
  const send = (outgoing: ServerResponse, status: number, body: object): void =>
    void outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  for (const name of ['oauth-authorization-server', 'openid-configuration'])
    issuer.instead.set(`/.well-known/${name}`, (_incoming, outgoing) => send(outgoing, 200, metadata));
  issuer.instead.set('/token', async (incoming: IncomingMessage, outgoing) => {
    const answered = await answer(new URLSearchParams(await text(incoming)));
    send(outgoing, answered === undefined ? 400 : 200, answered ?? { error: 'invalid_grant' });
  });
}

async function startIssuers() {
  const [provider, server] = await Promise.all([startIssuer(), startIssuer()]);
  onTestFinished(async () => void (await Promise.all([provider.close(), server.close()])));
  let isAllowed = true;
  const grants: string[] = [];
  // Step 1: the identity provider exchanges an ID token for an ID-JAG, if its policy allows that.
  answerTokens(provider, async (request) => {
    expect(request.get('requested_token_type')).toBe(idJagType);
    if (!isAllowed || request.get('subject_token') !== 'id-token-of-ada') return undefined;
    const claims = {
      aud: request.get('audience'),
      resource: request.get('resource'),
      client_id: 'desktop',
      scope: 'mcp:use',
      jti: `jag-${grants.length}`,
    };
    const idJag = await provider.token({ claims, header: { typ: 'oauth-id-jag+jwt' } });
    grants.push(idJag);
    return { access_token: idJag, issued_token_type: idJagType, token_type: 'N_A', expires_in: 300 };
  });
  // Step 2: the authorization server gives an access token for the resource of the ID-JAG.
  answerTokens(server, async (request) => {
    if (request.get('grant_type') !== bearerGrant) return undefined;
    const keys = createLocalJWKSet({ keys: provider.keys.map(({ publicJwk }) => publicJwk) });
    const checks = { issuer: provider.url, audience: server.url, typ: 'oauth-id-jag+jwt' };
    const { payload } = await jwtVerify(request.get('assertion') ?? '', keys, checks);
    const claims = { sub: payload.sub, aud: payload['resource'], client_id: 'desktop', scope: payload['scope'] };
    return { access_token: await server.token({ claims }), token_type: 'Bearer', expires_in: 300 };
  });
  const withdraw = (): void => {
    isAllowed = false;
  };
  return { provider, server, grants, withdraw };
}

it('docs/recipes/enterprise-managed.md: a token by an ID-JAG is accepted, the ID-JAG is not, and a policy can refuse', async () => {
  const { provider, server, grants, withdraw } = await startIssuers();
  const port = await findFreePort();
  const [shown] = blocksOf(readFileSync(`${root}${page}`, 'utf8')).filter(({ language }) => language === 'json');
  const [command, ...args] = everythingFixture;
  const edited = (shown?.text ?? '')
    .replaceAll('https://mcp.example.com', `http://127.0.0.1:${port}`)
    .replace('https://auth.example.com', server.url)
    .replace('"mcp.example.com"', '"127.0.0.1"')
    .replace('"command": "@modelcontextprotocol/server-everything"', JSON.stringify({ command, args }).slice(1, -1));
  const file = await changingFile('gangway.json', edited);
  const gateway = await startLocalGateway({ args: ['--config', file.path], port });

  const connect = async (): Promise<Client> => {
    const authProvider = new CrossAppAccessProvider({
      clientId: 'desktop',
      clientSecret: 'secret',
      expectedIssuer: server.url,
      assertion: async ({ authorizationServerUrl, resourceUrl, scope }) => {
        const { jwtAuthGrant } = await discoverAndRequestJwtAuthGrant({
          idpUrl: provider.url,
          audience: authorizationServerUrl,
          resource: resourceUrl,
          idToken: 'id-token-of-ada',
          clientId: 'desktop',
          ...(scope !== undefined && { scope }),
        });
        return jwtAuthGrant;
      },
    });
    const client = new Client({ name: 'desktop', version: '1.0.0' });
    onTestFinished(() => client.close());
    const transport = new StreamableHTTPClientTransport(new URL(gateway.url), { authProvider });
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    return client;
  };

  const client = await connect();
  const { content } = await client.callTool({ name: 'echo', arguments: { text: 'granted' } });
  expect(content).toEqual([{ type: 'text', text: 'granted' }]);

  const withToken = (token: string) =>
    post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, { Authorization: `Bearer ${token}` });
  expect(grants).toHaveLength(1);
  expect((await withToken(grants[0] ?? '')).status).toBe(401);
  // An access token for another resource is refused, too.
  const elsewhere = await server.token({ claims: { aud: 'https://other.example.com/mcp', scope: 'mcp:use' } });
  expect((await withToken(elsewhere)).status).toBe(401);

  withdraw();
  await expect(connect()).rejects.toThrow();
});
