import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import * as oauth from 'oauth4webapi';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type DpopClient, makeDpopClient } from '../support/dpop-client.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { open, post } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { scrape } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { certificateFolder, type ServerCertificate } from '../support/server-certificate.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';

const publicUrl = 'https://mcp.example.com';
const initializing = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

let issuer: Issuer;
let gateway: Gateway;
let adminPort: number;
beforeAll(async () => {
  [issuer, adminPort] = await Promise.all([startIssuer(), findFreePort()]);
  gateway = await startGateway({
    adminPort,
    args: ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl, '--defaults.scopes.tools', 'slow=more'],
    command: everythingFixture,
    isStoppedWithTest: false,
  });
});
afterAll(async () => {
  await gateway?.stop();
  await issuer?.close();
});

const tokenFor = (thumbprint: string, claims: object = {}) =>
  issuer.token({ claims: { cnf: { jkt: thumbprint }, ...claims } });

describe('a client with an OAuth library', () => {
  /** Sends the requests of an MCP client with proofs by the library, through a proxy that ends TLS. */
  async function fetchWithProofs(claims: object = {}) {
    const keys = await oauth.generateKeyPair('ES256', { extractable: true });
    const thumbprint = await calculateJwkThumbprint(await exportJWK(keys.publicKey));
    const token = await tokenFor(thumbprint, claims);
    const handle = oauth.DPoP({}, keys);
    const statuses: number[] = [];
    const proxied: typeof fetch = async (url, init) => {
      const answer = await fetch(String(url).replace(publicUrl, gateway.baseUrl), init);
      statuses.push(answer.status);
      return answer;
    };
    const send = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
      const { method = 'GET', headers, body, signal } = init;
      const options = { DPoP: handle, [oauth.customFetch]: proxied as never, ...(signal && { signal }) };
      const once = () =>
        oauth.protectedResourceRequest(token, method, new URL(url), new Headers(headers), body as string, options);
      return once().catch((error: unknown) => {
        if (oauth.isDPoPNonceError(error)) return once();
        throw error;
      });
    };
    return { send, statuses, token };
  }

  test('[B19] uses a session from its first request to its last, and asks for a nonce once', async () => {
    const { send, statuses } = await fetchWithProofs();
    const client = new Client({ name: 'dpop', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(`${publicUrl}/mcp`), { fetch: send });
    await client.connect(transport as never);
    const { content } = await client.callTool({ name: 'echo', arguments: { text: 'hi' } });
    expect(JSON.stringify(content)).toContain('hi');
    await transport.terminateSession();
    await client.close();
    expect(statuses.filter((status) => status === 401)).toHaveLength(1);
    expect(statuses[0]).toBe(401);
  });

  test('[B20] is told in its scheme which scopes a tool needs', async () => {
    const { send } = await fetchWithProofs({ scope: 'base' });
    const body = JSON.stringify(initializing);
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    const opened = await send(`${publicUrl}/mcp`, { method: 'POST', headers, body });
    const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'slow', arguments: {} } };
    const refused = send(`${publicUrl}/mcp`, { method: 'POST', headers: session, body: JSON.stringify(call) });
    await expect(refused).rejects.toMatchObject({
      cause: [{ scheme: 'dpop', parameters: { error: 'insufficient_scope', scope: 'more' } }],
    });
  });
});

describe('a request of another transport', () => {
  let ada: DpopClient;
  let token: string;
  let nonce: string;
  beforeAll(async () => {
    ada = await makeDpopClient();
    token = await tokenFor(ada.thumbprint);
    const first = await post(gateway.url, initializing, await headersFor('POST', '/mcp', ''));
    nonce = String(first.headers['dpop-nonce']);
  });
  const headersFor = async (method: string, path: string, by = nonce) => ({
    authorization: `DPoP ${token}`,
    dpop: await ada.prove(token, method, publicUrl + path, by),
  });

  test('[B19] opens a WebSocket with a proof for GET, and none with the proof of the other endpoint', async () => {
    const url = webSocketUrlOf(gateway.url);
    const refused = await refusedHandshake(url, { headers: await headersFor('GET', '/mcp') });
    expect(refused).toMatchObject({ status: 401, json: { error: { data: { error: 'invalid_dpop_proof' } } } });
    const early = await refusedHandshake(url, { headers: await headersFor('GET', '/ws', 'no-nonce') });
    expect(early.headers).toMatchObject({ 'dpop-nonce': expect.stringMatching(/^[\w-]{40}$/) });
    const headers = await headersFor('GET', '/ws');
    const client = await connectWebSocket(url, { headers });
    await client.initialize();
    expect(await client.callTool('echo', { text: 'hi' })).toHaveProperty('result');
    expect((await refusedHandshake(url, { headers })).json.error.data.error_description).toContain('used before');
  });

  test('[B19] of HTTP+SSE needs a proof for the stream and for each message', async () => {
    const accept = { accept: 'text/event-stream' };
    const headers = { ...accept, ...(await headersFor('GET', '/sse')) };
    const stream = await open(`${gateway.baseUrl}/sse`, { method: 'GET', headers });
    onTestFinished(() => stream.drop());
    expect(stream.status).toBe(200);
    const { data = '' } = await stream.events.next(({ event }) => event === 'endpoint');
    const endpoint = gateway.baseUrl + data;
    expect((await post(endpoint, initializing, { authorization: `DPoP ${token}` })).status).toBe(401);
    expect((await post(endpoint, initializing, await headersFor('POST', '/sse'))).status).toBe(401);
    expect((await post(endpoint, initializing, await headersFor('POST', '/messages'))).status).toBe(202);
    expect(await stream.nextMessage(({ id }) => id === 1)).toHaveProperty('result');
  });

  test('[P12] leaves nothing of its token or proof in the log, and is counted by cause', async () => {
    const headers = await headersFor('POST', '/other');
    await post(gateway.url, initializing, headers);
    const isRefusal = ({ why, expected }: object & { why?: unknown; expected?: unknown }) =>
      why === 'proof_request' && expected === `POST ${publicUrl}/mcp`;
    await waitFor(() => gateway.logs().some(isRefusal), { what: 'the log line with the expected request' });
    const log = gateway.stdout() + gateway.stderr();
    for (const text of [token, headers.dpop])
      for (const part of text.split('.').slice(1)) expect(log).not.toContain(part);
    const count = (await scrape(adminPort)).value('mcp_gangway_refused_credentials_total', { cause: 'proof_request' });
    expect(count).toBeGreaterThanOrEqual(1);
  });
});

test('[B19] the metadata names the algorithms of proofs, and a page of another origin may read the nonce', async () => {
  const path = '/.well-known/oauth-protected-resource/mcp';
  const { json } = await (await open(gateway.baseUrl + path, { method: 'GET' })).answer();
  expect(json.dpop_signing_alg_values_supported).toContain('ES256');
  expect(json).not.toHaveProperty('dpop_bound_access_tokens_required');
  const { headers } = await post(gateway.url, initializing, { origin: 'http://localhost:1' });
  expect(headers['access-control-expose-headers']).toContain('DPoP-Nonce');
});

test('[B19] --auth.oauth.dpop require refuses other tokens on every endpoint, and says so in the metadata', async () => {
  const args = ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl, '--auth.oauth.dpop', 'require'];
  const strict = await startGateway({ args, command: everythingFixture });
  const path = '/.well-known/oauth-protected-resource/mcp';
  const { json } = await (await open(strict.baseUrl + path, { method: 'GET' })).answer();
  expect(json.dpop_bound_access_tokens_required).toBe(true);
  const refused = await post(strict.url, initializing, { authorization: `Bearer ${await issuer.token()}` });
  expect(refused).toMatchObject({ status: 401, json: { error: { data: { error: 'invalid_token' } } } });
  expect(refused.headers['www-authenticate']).toMatch(/^DPoP .*algs="ES256 [^"]*", resource_metadata="/);
});

describe('a token that is bound to a client certificate', () => {
  const folder = certificateFolder();
  afterAll(() => folder.remove());

  const start = async (accepted = 'any') => {
    const server = await folder.make('server');
    const args = ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl, '--tls-cert', server.cert];
    const options = ['--tls-key', server.key, '--auth.oauth.clientCertificates', accepted];
    return { secure: await startGateway({ args: [...args, ...options], command: everythingFixture }), ca: server.ca };
  };
  const tokenFor = ({ ca }: ServerCertificate): Promise<string> => {
    const thumbprint = createHash('sha256').update(new X509Certificate(ca).raw).digest('base64url');
    return issuer.token({ claims: { cnf: { 'x5t#S256': thumbprint } } });
  };
  const send = (port: number, ca: Buffer, token: string, client?: ServerCertificate): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const shown = client && { cert: readFileSync(client.cert), key: readFileSync(client.key) };
      const headers = {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        accept: 'application/json, text/event-stream',
      };
      const to = { host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, ca, agent: false, ...shown };
      const sent = request(to, (answer) => {
        resolve(answer.statusCode);
        answer.resume();
      });
      sent.on('error', reject).end(JSON.stringify(initializing));
    });

  test('[B19] works over a connection with this certificate, and over no other', async () => {
    const [{ secure, ca }, ada, eve] = await Promise.all([start(), folder.make('ada'), folder.make('eve')]);
    const token = await tokenFor(ada);
    expect(await send(secure.port, ca, token, ada)).toBe(200);
    expect(await send(secure.port, ca, token, eve)).toBe(401);
    expect(await send(secure.port, ca, token)).toBe(401);
    expect(await send(secure.port, ca, await issuer.token())).toBe(200);
    expect((await post(gateway.url, initializing, { authorization: `Bearer ${token}` })).status).toBe(401);
  });

  test('[B19] works only with a certificate of the authority, if one is configured', async () => {
    const [ada, eve] = await Promise.all([folder.make('trusted'), folder.make('stranger')]);
    const { secure, ca } = await start(ada.cert);
    expect(await send(secure.port, ca, await tokenFor(ada), ada)).toBe(200);
    expect(await send(secure.port, ca, await tokenFor(eve), eve)).toBe(401);
  });
});
