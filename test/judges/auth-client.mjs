// A client for the scenarios auth/* of the official conformance suite: node auth-client.mjs <era> [--through <word> ...] <url>
//
// As client.mjs, but the client logs in with OAuth, by the official SDK of its era. Its user consents to everything.
import * as modernSdk from '@modelcontextprotocol/client';
import * as legacyExtensions from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startGateway } from './gateway-in-front.mjs';

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const clientInfo = { name: 'judge-client', version: '1.0.0' };
/** The redirect is only read, and never followed. */
const redirectUrl = 'http://127.0.0.1:1/callback';
/** More logins than any scenario needs; a client must not log in for ever. */
const maxLogins = 3;

const [era, ...words] = process.argv.slice(2);
const isModern = era === 'modern';
const extensions = isModern ? modernSdk : legacyExtensions;

/** What the authorization server sends to the redirect URL. */
let callback;

/** A provider for the authorization code flow. */
const createUserProvider = () => {
  const kept = {};
  const { client_id, client_secret } = context;
  if (scenario === 'auth/pre-registration') kept.information = { client_id, client_secret };
  return {
    redirectUrl,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    clientMetadata: {
      client_name: 'judge-client',
      redirect_uris: [redirectUrl],
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    clientInformation: () => kept.information,
    saveClientInformation(information) {
      kept.information = information;
    },
    tokens: () => kept.tokens,
    saveTokens(tokens) {
      kept.tokens = tokens;
    },
    saveCodeVerifier(verifier) {
      kept.verifier = verifier;
    },
    codeVerifier: () => kept.verifier,
    saveDiscoveryState(state) {
      kept.discovery = state;
    },
    discoveryState: () => kept.discovery,
    invalidateCredentials(what) {
      if (what === 'all' || what === 'client') kept.information = undefined;
      if (what === 'all' || what === 'tokens') kept.tokens = undefined;
      if (what === 'all' || what === 'discovery') kept.discovery = undefined;
    },
    async redirectToAuthorization(url) {
      const { headers } = await fetch(url, { redirect: 'manual' });
      callback = new URL(headers.get('location') ?? '').searchParams;
    },
  };
};

const { client_id: clientId, client_secret: clientSecret } = context;
const providers = {
  'auth/client-credentials-basic': () => new extensions.ClientCredentialsProvider({ clientId, clientSecret }),
  'auth/client-credentials-jwt': () =>
    new extensions.PrivateKeyJwtProvider({
      clientId,
      privateKey: context.private_key_pem,
      algorithm: context.signing_algorithm ?? 'ES256',
    }),
  'auth/enterprise-managed-authorization': () =>
    new extensions.CrossAppAccessProvider({
      clientId,
      clientSecret,
      assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
        const { jwtAuthGrant } = await extensions.requestJwtAuthorizationGrant({
          tokenEndpoint: context.idp_token_endpoint,
          audience: authorizationServerUrl,
          resource: resourceUrl,
          idToken: context.idp_id_token,
          clientId: context.idp_client_id,
          scope,
          fetchFn,
        });
        return jwtAuthGrant;
      },
    }),
};

const authProvider = (providers[scenario] ?? createUserProvider)();

const connections = {
  legacy: { Client: LegacyClient, Transport: LegacyTransport, options: {} },
  modern: {
    Client: modernSdk.Client,
    Transport: modernSdk.StreamableHTTPClientTransport,
    options: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  },
};
const { Client, Transport, options } = connections[era];

let transport;
/** Runs an action, and again after each login. */
async function authorized(action) {
  for (let logins = 0; ; logins++) {
    try {
      return await action();
    } catch (error) {
      if (callback === undefined || logins === maxLogins) throw error;
      const params = callback;
      callback = undefined;
      await transport.finishAuth(isModern ? params : params.get('code'));
    }
  }
}

async function runClient(url) {
  let client;
  await authorized(async () => {
    client = new Client(clientInfo, options);
    transport = new Transport(new URL(url), { authProvider });
    await client.connect(transport);
  });
  try {
    await authorized(() => client.listTools());
    await authorized(() => client.callTool({ name: 'test-tool', arguments: {} }));
    if (scenario === 'auth/authorization-server-migration') await authorized(() => client.listTools());
  } finally {
    await client.close();
  }
}

const server = words.at(-1);
const gateway = words[0] === '--through' ? await startGateway(words.slice(1, -1), server) : undefined;
try {
  await runClient(gateway?.url ?? server);
} finally {
  await gateway?.stop();
}
