import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type GuardedServer, startGuardedServer, tokenOf, usualMetadata } from '../support/guarded-server.ts';
import { type Exchange, initialize, open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

const issuer = 'https://login.example.com';
const [ada, adaNext, bob] = [
  tokenOf({ iss: issuer, sub: 'ada', jti: 1 }),
  tokenOf({ iss: issuer, sub: 'ada', jti: 2 }),
  tokenOf({ iss: issuer, sub: 'bob' }),
] as const;
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

let server: GuardedServer;
let gateway: LocalGateway;
beforeAll(async () => {
  server = await startGuardedServer();
  const args = ['--log-level', 'trace', '--defaults.auth', 'upstream', server.url];
  gateway = await startLocalGateway({ args, isStoppedWithTest: false });
});
afterAll(async () => {
  await gateway.stop();
  server.close();
});
beforeEach(() => {
  server.tokens.clear();
  server.narrow.clear();
  server.expireAtInitialize.clear();
  server.open.clear();
  server.refusesWithError = false;
  for (const token of [ada, adaNext]) server.tokens.set(token, 'ada');
  server.tokens.set(bob, 'bob');
  server.metadata = usualMetadata;
  server.forgetSessions();
});

const initializeRequest = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const version = 'io.modelcontextprotocol/protocolVersion';
const modernCall = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'user',
    arguments: {},
    _meta: { [version]: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
  },
};
const modernHeaders = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'user' };
const metadataUrl = (): string => `${gateway.baseUrl}/.well-known/oauth-protected-resource/mcp`;
const reasonOf = (json: { error: { data: { reason: string } } }): string => json.error.data.reason;

describe('the refusal of a server with its own OAuth', () => {
  test('of initialize is the answer to the client, with the metadata URL of the gateway', async () => {
    const { status, headers, json } = await post(gateway.url, initializeRequest);
    expect(status).toBe(401);
    expect(headers['www-authenticate']).toBe(`Bearer error="invalid_token", resource_metadata="${metadataUrl()}"`);
    expect(reasonOf(json)).toBe('upstream_unauthorized');
    expect(gateway.stderr()).not.toContain('"level":"warn"'); // anybody can do that
  });

  test('of a modern request is the answer to the client, and a token makes the request work', async () => {
    const refused = await post(gateway.url, modernCall, modernHeaders);
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toContain(metadataUrl());
    const answered = await post(gateway.url, modernCall, { ...modernHeaders, ...bearer(ada) });
    expect(answered.status).toBe(200);
    expect(answered.json.result.content[0].text).toBe('ada');
  });

  test('in a session names the missing scopes, and the session goes on with another token of the user', async () => {
    server.narrow.add(ada);
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    const refused = await session.request('tools/call', { name: 'admin' });
    expect(refused.status).toBe(403);
    expect(refused.headers['www-authenticate']).toBe('Bearer error="insufficient_scope", scope="mcp:use mcp:admin"');
    expect(reasonOf(refused.json)).toBe('upstream_forbidden');
    const allowed = await session.request('tools/call', { name: 'admin' }, { headers: bearer(adaNext) });
    expect(allowed.json.result.content[0].text).toBe('ada');
  });

  test('as a JSON-RPC error with 403 and no challenge reaches the client as it is', async () => {
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    const error = { code: -32001, message: 'Not on Sundays' };
    const { status, json } = await session.request('tools/call', { name: 'forbidden' });
    expect([status, json.error]).toEqual([200, error]);
    const modern = { ...modernCall, params: { ...modernCall.params, name: 'forbidden' } };
    const headers = { ...modernHeaders, 'Mcp-Name': 'forbidden', ...bearer(ada) };
    expect((await post(gateway.url, modern, headers)).json.error).toEqual(error);
    const closed = await session.request('tools/call', { name: 'closed' });
    expect([closed.status, reasonOf(closed.json)]).toEqual([403, 'upstream_forbidden']);
  });

  test('of a new session is a 403 for its client, also where the server writes a JSON-RPC error', async () => {
    server.refusesWithError = true;
    server.open.add('server/discover');
    const legacy = await post(gateway.url, initializeRequest, bearer('unknown'));
    expect([legacy.status, reasonOf(legacy.json)]).toEqual([403, 'upstream_forbidden']);
    const modern = await post(gateway.url, modernCall, { ...modernHeaders, ...bearer('unknown') });
    expect([modern.status, reasonOf(modern.json)]).toEqual([403, 'upstream_forbidden']);
  });

  test('of an expired token has a challenge, also where the server sends none', async () => {
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    server.tokens.delete(ada);
    const { challenge } = server;
    server.challenge = undefined;
    try {
      const { status, headers } = await session.request('tools/list');
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toBe(`Bearer resource_metadata="${metadataUrl()}"`);
    } finally {
      server.challenge = challenge;
    }
  });

  test('of the first request for a tool reaches a client whose session began without a token', async () => {
    for (const method of ['initialize', 'notifications/initialized']) server.open.add(method);
    const session = await initialize(gateway.url);
    expect((await session.request('tools/list')).status).toBe(401);
    expect((await session.request('tools/list', {}, { headers: bearer(ada) })).status).toBe(200);
  });
});

test('the `initialized` that a server refused is sent again with the next token, and its stream is opened', async () => {
  server.open.add('initialize'); // only this one
  const session = await initialize(gateway.url);
  expect((await session.request('tools/list')).status).toBe(401);
  const headers = bearer(ada);
  for (const _ of ['first', 'second']) expect((await session.request('tools/list', {}, { headers })).status).toBe(200);
  const own = server.seen.at(-1)?.session;
  const got = () => server.seen.filter((each) => each.session === own);
  await waitFor(() => got().some(({ http }) => http === 'GET'), { what: 'the stream' });
  const posts = got().filter(({ http }) => http === 'POST');
  expect(posts.map(({ method, authorization }) => [method, authorization !== undefined])).toEqual([
    ['notifications/initialized', false],
    ['tools/list', false],
    ['notifications/initialized', true],
    ['tools/list', true],
    ['tools/list', true],
  ]);
});

describe('a server that requires DPoP', () => {
  const send = (method: 'GET' | 'POST', url: string, headers: Record<string, string>) =>
    method === 'POST'
      ? post(url, initializeRequest, headers)
      : open(url, { method, headers }).then((it) => it.answer());

  test.each(['POST', 'GET'] as const)(
    'never sees a token that a client sends with a proof: 401 to the %s',
    async (method) => {
      const own = tokenOf({ iss: issuer, sub: 'ada', jti: method });
      server.tokens.set(own, 'ada');
      const headers = { Authorization: `DPoP ${own}`, DPoP: 'proof', Accept: 'application/json, text/event-stream' };
      const { status, json, headers: received } = await send(method, gateway.url, headers);
      expect([status, reasonOf(json)]).toEqual([401, 'upstream_proof_refused']);
      expect(received['www-authenticate']).toBe(
        `Bearer error="invalid_token", error_description="The gateway cannot pass on DPoP proofs to this server", resource_metadata="${metadataUrl()}"`,
      );
      expect(server.seen.filter(({ authorization }) => authorization?.includes(own))).toEqual([]);
    },
  );

  test.each([
    ['DPoP algs="ES256 RS256", error="invalid_token", Bearer error="invalid_token"', 'Bearer error="invalid_token"'],
    [
      'Bearer error="invalid_token", DPoP algs="ES256", Basic realm="a, DPoP b"',
      'Bearer error="invalid_token", Basic realm="a, DPoP b"',
    ],
    ['DPoP, Bearer', 'Bearer'],
    ['Bearer realm="DPoP algs=\\"x\\""', 'Bearer realm="DPoP algs=\\"x\\""'],
    ['DPoP error="use_dpop_nonce", resource_metadata="{origin}/x"', undefined],
  ])('is not known by its challenges: %s', async (challenge, expected) => {
    const { challenge: usual } = server;
    server.challenge = challenge;
    try {
      const { status, headers } = await post(gateway.url, initializeRequest);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toBe(expected ?? `Bearer resource_metadata="${metadataUrl()}"`);
    } finally {
      server.challenge = usual;
    }
  });

  const serveMetadata = (members: object): void => {
    server.metadata = (outgoing, origin) =>
      void outgoing
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [issuer], ...members }));
  };

  test('for some tokens has metadata without a word about it', async () => {
    serveMetadata({ dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: false });
    await untilForgotten();
    const { json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect(json).toEqual({ resource: gateway.url, authorization_servers: [issuer] });
  });

  test('for all tokens has no metadata for clients: 502 says why', async () => {
    serveMetadata({ dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: true });
    await untilForgotten();
    const { status, json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect([status, reasonOf(json)]).toEqual([502, 'upstream_requires_proof']);
    await untilForgotten();
  });
});

test.each([
  [
    'a login',
    'Bearer',
    /^(?!.*refused access.*refused access).*refused access \(401\)\. It asks for a Bearer token: .*--header.*--defaults\.auth upstream/s,
  ],
  ['metadata', 'Other resource_metadata="{origin}/x"', /a login with OAuth/],
  ['no login', 'Basic realm="x"', /refused access \(401\)\. Set credentials with --header/],
])('without auth: upstream, the advice at the start follows from the 401: %s', async (_name, challenge, advice) => {
  const other = await startGuardedServer();
  onTestFinished(() => other.close());
  other.challenge = challenge;
  for (const transport of challenge === 'Bearer' ? ['auto', 'sse'] : ['auto'])
    await expect(startLocalGateway({ args: ['--defaults.transport', transport, other.url] })).rejects.toThrow(advice);
});

test('[P12] requests without an accepted token cause no warnings, whatever their method', async () => {
  const exchanges: Promise<Exchange>[] = [];
  for (const [method, path] of [
    ['GET', '/sse'],
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
  ] as const) {
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': 'x', ...(path === '/mcp' && bearer('unknown')) };
    exchanges.push(open(gateway.baseUrl + path, { method, headers }));
  }
  const statuses = (await Promise.all(exchanges)).map(({ status }) => status);
  expect(statuses).toEqual([401, 401, 401]);
  const refused = () =>
    gateway.logs().filter(({ msg, reason }) => msg === 'refused a request' && reason === 'upstream_unauthorized');
  await waitFor(() => refused().length > 0, { what: 'the log line of a refusal' });
  expect(refused().map(({ level }) => level)).not.toContain('warn');
  expect(gateway.sharing).not.toContain('count as one user');
});

describe('a session at a server with its own OAuth', () => {
  test('[P11] does not exist for another user, whatever is asked of it', async () => {
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    const headers = { ...bearer(bob), 'Mcp-Session-Id': session.id };
    expect((await session.request('tools/list', {}, { headers })).status).toBe(404);
    for (const method of ['GET', 'DELETE']) {
      const exchange = await open(gateway.url, { method, headers: { ...headers, Accept: 'text/event-stream' } });
      expect(exchange.status).toBe(404);
    }
    const ofBob = server.seen.filter(({ authorization }) => authorization === bearer(bob).Authorization);
    expect(ofBob.filter((seen) => seen.session !== '')).toEqual([]);
    expect((await session.request('tools/list')).status).toBe(200);
  });

  test('[P11] is closed to a forged token of its user, which the server does not accept', async () => {
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    const forged = { ...bearer(tokenOf({ iss: issuer, sub: 'ada', jti: 'forged' })), 'Mcp-Session-Id': session.id };
    for (const method of ['GET', 'DELETE']) {
      const exchange = await open(gateway.url, { method, headers: { ...forged, Accept: 'text/event-stream' } });
      expect(exchange.status).toBe(401);
    }
    expect((await session.request('tools/list', {}, { headers: forged })).status).toBe(401);
    expect((await session.request('tools/list')).status).toBe(200);
  });

  test.each([
    ['gets the challenge', false, 401, 'upstream_unauthorized'],
    ['is refused, also where the server writes a JSON-RPC error', true, 403, 'upstream_forbidden'],
  ])('is restored by the next token: a request with the expired one %s', async (_, withError, status, reason) => {
    server.refusesWithError = withError;
    const session = await initialize(gateway.url, { headers: bearer(ada) });
    // The token expires between the two: the server still sees that it has forgotten the session.
    server.forgetSessions();
    server.expireAtInitialize.add(ada);
    const refused = await session.request('tools/list');
    expect([refused.status, reasonOf(refused.json)]).toEqual([status, reason]);
    if (!withError) expect(refused.headers['www-authenticate']).toContain(metadataUrl());
    expect((await session.request('tools/list')).status).toBe(status);
    const answered = await session.request('tools/call', { name: 'user' }, { headers: bearer(adaNext) });
    expect(answered.json.result.content[0].text).toBe('ada');
  });

  test('[P12] leaves no token in the log', () => {
    const output = gateway.stderr();
    for (const token of [ada, adaNext, bob]) expect(output).not.toContain(token);
  });
});

describe('the metadata of a server with its own OAuth', () => {
  test('has the URL of the gateway as the resource, and the authorization server of the server', async () => {
    const { status, json, headers } = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect(status).toBe(200);
    expect(json).toEqual({
      resource: gateway.url,
      authorization_servers: [issuer],
      scopes_supported: ['mcp:use'],
    });
    expect(headers).toMatchObject({ 'access-control-allow-origin': '*', 'cache-control': 'no-store' });
  });

  test('is the origin of the server where the server has no such document (2025-03-26)', async () => {
    server.metadata = (outgoing) => void outgoing.writeHead(404).end();
    await untilForgotten();
    const { json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect(json).toEqual({ resource: gateway.url, authorization_servers: [server.origin] });
  });

  test('is fetched again after a refusal: the server may have moved to another authorization server', async () => {
    const issuers = async () =>
      (await (await open(metadataUrl(), { method: 'GET' })).answer()).json.authorization_servers;
    await untilForgotten();
    expect(await issuers()).toEqual([issuer]);
    const moved = 'https://login2.example.com';
    server.metadata = (outgoing, origin) =>
      void outgoing.end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [moved] }));
    server.tokens.clear();
    expect((await post(gateway.url, initializeRequest, bearer(ada))).status).toBe(401);
    expect(await issuers()).toEqual([moved]);
  });

  test('[P8] is fetched once at a time, however many clients ask for it after refusals', async () => {
    await untilForgotten();
    let running = 0;
    let most = 0;
    server.metadata = (outgoing, origin) => {
      most = Math.max(most, ++running);
      setTimeout(() => {
        running -= 1;
        usualMetadata(outgoing, origin);
      }, 20);
    };
    const ask = async () => {
      await post(gateway.url, initializeRequest, bearer('unknown'));
      return (await (await open(metadataUrl(), { method: 'GET' })).answer()).status;
    };
    const statuses = await Promise.all(Array.from({ length: 20 }, ask));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(most).toBe(1);
  });

  test('of a server whose public name leads to the gateway has the URL that both have', async () => {
    await using own = await startLocalGateway({
      args: ['--public-url', 'https://mcp.example.com', '--defaults.auth', 'upstream', server.url],
    });
    const at = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp';
    const { challenge } = server;
    server.challenge = `Bearer error="invalid_token", resource_metadata="${at}"`;
    try {
      for (const resource of ['https://mcp.example.com/mcp', 'https://mcp.example.com']) {
        const document = { resource, authorization_servers: [issuer], scopes_supported: ['mcp:use'] };
        server.metadata = (outgoing) => void outgoing.end(JSON.stringify(document));
        const { status, headers } = await post(own.url, initializeRequest);
        expect([status, headers['www-authenticate']]).toEqual([401, server.challenge]);
        const { json } = await (await open(own.baseUrl + new URL(at).pathname, { method: 'GET' })).answer();
        expect(json).toEqual(document);
      }
    } finally {
      server.challenge = challenge;
    }
  });

  test('about another resource keeps it, so that clients refuse it', async () => {
    server.metadata = (outgoing) =>
      void outgoing
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"resource":"https://evil.example.com/mcp","authorization_servers":[]}');
    await untilForgotten();
    const { json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect(json.resource).toBe('https://evil.example.com/mcp');
  });
});

/** The gateway uses a document again for a second. */
async function untilForgotten(): Promise<void> {
  const { setTimeout: delay } = await import('node:timers/promises');
  await delay(1_050);
}

describe('hostile metadata', () => {
  test.each([
    ['a redirect into the network', 302, { location: 'http://169.254.169.254/' }, ''],
    ['a document of 300 KiB', 200, {}, JSON.stringify({ resource: 'x'.repeat(300 * 1024) })],
    ['no JSON', 200, {}, '<html>'],
    ['a list', 200, {}, '[]'],
    ['a fault of the server', 500, {}, '{}'],
  ])('that is %s is refused with 502', async (_name, status, headers, body) => {
    await untilForgotten();
    server.metadata = (outgoing) => void outgoing.writeHead(status, headers).end(body);
    const answer = await (await open(metadataUrl(), { method: 'GET' })).answer();
    expect(answer.status).toBe(502);
    expect(reasonOf(answer.json)).toBe('bad_upstream_metadata');
  });

  test('that drips slowly is refused after the time limit', async () => {
    await untilForgotten();
    let timer: NodeJS.Timeout | undefined;
    server.metadata = (outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      timer = setInterval(() => outgoing.write(' '), 100);
    };
    const startedAt = performance.now();
    const answer = await (await open(metadataUrl(), { method: 'GET' })).answer();
    clearInterval(timer);
    expect(answer.status).toBe(502);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  }, 30_000);

  test('at another origin, which the challenge names, is never fetched (SSRF)', async () => {
    await untilForgotten();
    const inside = await startGuardedServer();
    const { challenge } = server;
    server.challenge = `Bearer resource_metadata="${inside.origin}/.well-known/oauth-protected-resource/mcp"`;
    try {
      const { headers } = await post(gateway.url, initializeRequest);
      expect(headers['www-authenticate']).toBe(`Bearer resource_metadata="${metadataUrl()}"`);
      const { json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
      expect(json.authorization_servers).toEqual([issuer]); // of the server's own document
      expect(inside.seen).toEqual([]);
    } finally {
      server.challenge = challenge;
      inside.close();
    }
  });

  test('is not served for a host that is not the gateway (DNS rebinding)', async () => {
    const exchange = await open(metadataUrl(), { method: 'GET', headers: { Host: 'evil.example.com' } });
    expect(exchange.status).toBe(403);
  });
});

// Last: the gateway remembers for a minute that requests without a token are accepted.
test('the metadata of a server without metadata that needs no token is 404 no_upstream_metadata', async () => {
  server.metadata = (outgoing) => void outgoing.writeHead(404).end();
  server.open.add('ping');
  await untilForgotten();
  const { status, json } = await (await open(metadataUrl(), { method: 'GET' })).answer();
  expect([status, reasonOf(json)]).toEqual([404, 'no_upstream_metadata']);
});

test('[P11] an invented token with the name of a user does not use up the requests of this user', async () => {
  const args = ['--limits.user.requestsPerSecond', '1', '--defaults.auth', 'upstream'];
  const limited = await startLocalGateway({ args: [...args, server.url] });
  const session = await initialize(limited.url, { headers: bearer(ada) });
  const invented = bearer(tokenOf({ iss: issuer, sub: 'ada', jti: 'invented' }));
  const statuses = [];
  for (let n = 0; n < 40; n += 1) statuses.push((await post(limited.url, {}, invented)).status);
  expect(statuses).toContain(429);
  for (let n = 0; n < 5; n += 1) expect((await session.request('tools/list')).status).toBe(200);
  expect(limited.stderr()).not.toContain('no effect');
});

test('a Host with an impossible port is refused, and is no error of the gateway', async () => {
  const headers = { Host: 'localhost:99999', Authorization: 'DPoP abc' };
  for (const url of [gateway.url, metadataUrl()]) {
    const { status, json } = await (await open(url, { method: 'GET', headers })).answer();
    expect([status, reasonOf(json)]).toEqual([400, 'bad_host']);
  }
});
