// A client for the scenarios auth/* of the official conformance suite: node auth-client.mjs <era> [--through|--in-front <word> ...] <url>
//
// As client.mjs, but the client logs in with OAuth, by the official SDK of its era. Its user consents to everything. With
// `--in-front`, the client uses the URL of the server, as where the name of the server leads to a proxy: its requests to the
// endpoint and its metadata reach the gateway, and all others the server.
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
/** A client must not log in for ever: the suite allows three attempts in all. */
const maxLogins = 2;

const [era, ...words] = process.argv.slice(2);
const server = words.at(-1);
const isInFront = words[0] === '--in-front';
const ownUrl = isInFront ? ['--public-url', new URL(server).origin] : [];
const hasGateway = isInFront || words[0] === '--through';
const gateway = hasGateway ? await startGateway([...words.slice(1, -1), ...ownUrl], server) : undefined;
const url = isInFront ? server : (gateway?.url ?? server);
const resourceMetadata = '/.well-known/oauth-protected-resource';

/** Sends the requests for the endpoint and its metadata to the gateway. */
const fetchInFront = (input, init) => {
  const { origin, pathname, search } = new URL(input);
  const isOfGateway = pathname === new URL(url).pathname || pathname.startsWith(resourceMetadata);
  const isRouted = isInFront && isOfGateway && origin === new URL(url).origin;
  return fetch(isRouted ? new URL(pathname + search, gateway.url) : input, init);
};

const isVersion2 = era !== 'legacy';
const extensions = isVersion2 ? modernSdk : legacyExtensions;

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
      kept.discovery = undefined; // only for the time of a login: the next one may be at another authorization server
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

/** A provider for a workload, whose platform gives it a JWT (RFC 7523, section 2.1). The SDK has none. */
function createWorkloadProvider() {
  let tokens;
  return {
    redirectUrl: undefined,
    clientMetadata: { client_name: 'judge-client', redirect_uris: [], token_endpoint_auth_method: 'none' },
    clientInformation: () => ({ client_id: context.client_id }),
    saveClientInformation: () => undefined,
    tokens: () => tokens,
    saveTokens(issued) {
      tokens = issued;
    },
    redirectToAuthorization() {
      throw new Error('a workload has no user');
    },
    saveCodeVerifier: () => undefined,
    codeVerifier() {
      throw new Error('a workload has no code');
    },
    prepareTokenRequest: (scope) =>
      new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: context.valid_jwt,
        ...(scope && { scope }),
      }),
  };
}

/** A provider for the authorization code flow, whose tokens are bound to a key. */
async function createProvingProvider() {
  const session = await modernSdk.DpopSession.create();
  return { ...createUserProvider(), dpop: () => session };
}

const { client_id: clientId, client_secret: clientSecret } = context;
const providers = {
  'auth/client-credentials-basic': () => new extensions.ClientCredentialsProvider({ clientId, clientSecret }),
  'auth/client-credentials-jwt': () =>
    new extensions.PrivateKeyJwtProvider({
      clientId,
      privateKey: context.private_key_pem,
      algorithm: context.signing_algorithm ?? 'ES256',
    }),
  'auth/wif-jwt-bearer': createWorkloadProvider,
  'auth/dpop': createProvingProvider,
  'auth/dpop-nonce': createProvingProvider,
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

const authProvider = await (providers[scenario] ?? createUserProvider)();

const connections = {
  legacy: { Client: LegacyClient, Transport: LegacyTransport, options: {} },
  modern: {
    Client: modernSdk.Client,
    Transport: modernSdk.StreamableHTTPClientTransport,
    options: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  },
  // The mock servers of extensions are of the legacy era, and the SDK of that era lacks some extensions.
  either: {
    Client: modernSdk.Client,
    Transport: modernSdk.StreamableHTTPClientTransport,
    options: { versionNegotiation: { mode: 'auto' } },
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
      await transport.finishAuth(isVersion2 ? params : params.get('code'));
    }
  }
}

async function runClient() {
  let client;
  await authorized(async () => {
    client = new Client(clientInfo, options);
    transport = new Transport(new URL(url), { authProvider, fetch: fetchInFront });
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

try {
  await runClient();
} finally {
  await gateway?.stop();
}
