import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { UpstreamIdentity } from '../../../src/config/options/identity-options.ts';
import { NoUpstreamToken } from '../../../src/core/backend/upstream-tokens.ts';
import { createTokenRequests } from '../../../src/features/upstream-identity/token-client.ts';

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function listen(handler: Handler): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    handler(request, response, Buffer.concat(chunks).toString());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const secret = 'the-secret-of-the-gateway';
const subject = { token: 'the-token-of-alice', user: 'alice.read' };

const json =
  (body: unknown, status = 200): Handler =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

const issued = { access_token: 'fresh', token_type: 'Bearer', expires_in: 60 };

/** Requests one token within 500 ms. Returns the token, or the failure. */
async function request(
  handler: Handler,
  identity: Partial<UpstreamIdentity> = { grant: 'token_exchange' },
): Promise<unknown> {
  const origin = await listen(handler);
  const configured: UpstreamIdentity = {
    grant: 'client_credentials',
    clientId: 'gateway',
    clientSecret: secret,
    tokenUrl: `${origin}/token`,
    ...identity,
  };
  const requestToken = createTokenRequests(configured, 500);
  return requestToken(configured.grant === 'token_exchange' ? subject : undefined).catch((cause: unknown) => cause);
}

const unavailable = 'upstream_token_unavailable';
const refused = 'upstream_token_refused';

const attacks: readonly (readonly [name: string, Handler, reason: string, detail: RegExp])[] = [
  [
    'a slow drip of bytes',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 20);
      cleanups.push(() => clearInterval(timer));
    },
    unavailable,
    /did not answer completely within 500 ms/,
  ],
  ['no answer at all', () => undefined, unavailable, /did not answer completely within 500 ms/],
  [
    'a huge answer',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...issued, padding: 'x'.repeat(1_000_000) }));
    },
    unavailable,
    /more than 65536 bytes/,
  ],
  [
    'a redirect to another host',
    (_, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/steal' }).end(),
    unavailable,
    /redirect \(307\), which the gateway does not follow/,
  ],
  [
    'an HTML page',
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Error'),
    unavailable,
    /cannot use/,
  ],
  [
    'an HTML page with status 500',
    (_, response) => void response.writeHead(500).end('<p>Error'),
    unavailable,
    /status 500/,
  ],
  ['status 503', json({ error: 'temporarily_unavailable' }, 503), unavailable, /status 503/],
  ['status 429', json({ error: 'slow_down' }, 429), unavailable, /status 429/],
  ['a closed connection', (request) => request.socket.destroy(), unavailable, /cannot be reached \(/],
  ['JSON that is no object', json([issued]), unavailable, /cannot use/],
  ['no access_token', json({ token_type: 'Bearer' }), unavailable, /cannot use/],
  ['an empty access_token', json({ ...issued, access_token: '' }), unavailable, /cannot use/],
  ['no token_type', json({ access_token: 'fresh' }), unavailable, /cannot use/],
  ['another token_type', json({ ...issued, token_type: 'mac' }), unavailable, /cannot use/],
  ['a token bound to a key', json({ ...issued, token_type: 'DPoP' }), unavailable, /not a bearer token/],
  ['N_A, no access token', json({ ...issued, token_type: 'N_A' }), unavailable, /not a bearer token/],
  [
    'an ID token instead of an access token',
    json({ ...issued, issued_token_type: 'urn:ietf:params:oauth:token-type:id_token' }),
    unavailable,
    /not an access token/,
  ],
  ['expires_in 0', json({ ...issued, expires_in: 0 }), unavailable, /already expired/],
  ['expires_in below zero', json({ ...issued, expires_in: -1 }), unavailable, /cannot use/],
  ['expires_in that is no number', json({ ...issued, expires_in: 'soon' }), unavailable, /cannot use/],
  ['expires_in null', json({ ...issued, expires_in: null }), unavailable, /cannot use/],
  ['a line break in the token', json({ ...issued, access_token: 'a\r\nX-Admin: 1' }), unavailable, /header/],
  ['a token of 10 kB', json({ ...issued, access_token: 'x'.repeat(10_000) }), unavailable, /header/],
  ["the user's own token", json({ ...issued, access_token: subject.token }), unavailable, /own token/],
  ['invalid_client', json({ error: 'invalid_client' }, 401), refused, /invalid_client\)\. Check clientId/],
  ['invalid_grant', json({ error: 'invalid_grant' }, 400), refused, /invalid_grant/],
  ['invalid_target', json({ error: 'invalid_target' }, 400), refused, /audience and resource/],
  [
    'an error that quotes the token',
    json({ error: `bad ${subject.token} ${secret}`, error_description: subject.token }, 400),
    refused,
    /unknown error/,
  ],
];

describe('a hostile or broken token endpoint', () => {
  it.each(attacks)('%s: no token', async (_, handler, reason, detail) => {
    const outcome = await request(handler);
    expect(outcome).toBeInstanceOf(NoUpstreamToken);
    const failure = outcome as NoUpstreamToken;
    expect(failure.reason).toBe(reason);
    expect(failure.message).toMatch(detail);
    // Nothing of it is a secret, also not in the causes that a log would print.
    const shown = `${failure.stack} ${JSON.stringify(failure)} ${String(failure.cause)}`;
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain(subject.token);
  });

  it('a missing expires_in: the lifetime is unknown; a huge one is passed on and limited by the holder', async () => {
    expect(await request(json({ access_token: 'fresh', token_type: 'bearer' }))).toEqual({
      token: 'fresh',
      lifetimeMs: undefined,
    });
    expect(await request(json({ ...issued, expires_in: 1e12 }))).toEqual({ token: 'fresh', lifetimeMs: 1e15 });
  });
});

describe('a hostile issuer', () => {
  const metadata =
    (change: (origin: string) => Record<string, unknown>): Handler =>
    (request, response, body) => {
      const origin = `http://${request.headers.host}`;
      if (request.url === '/token') return json(issued)(request, response, body);
      return json({ issuer: origin, token_endpoint: `${origin}/token`, ...change(origin) })(request, response, body);
    };
  const withIssuer = async (handler: Handler): Promise<unknown> => {
    const origin = await listen(handler);
    const identity: UpstreamIdentity = {
      grant: 'client_credentials',
      clientId: 'gateway',
      clientSecret: secret,
      issuer: origin,
    };
    return createTokenRequests(identity, 500)(undefined).catch((cause: unknown) => cause);
  };

  it('metadata that name the issuer: a token', async () => {
    expect(await withIssuer(metadata(() => ({})))).toEqual({ token: 'fresh', lifetimeMs: 60_000 });
  });

  it.each([
    ['metadata of another issuer', () => ({ issuer: 'https://login.example' })],
    ['no token endpoint', () => ({ token_endpoint: undefined })],
    ['a token endpoint that is no URL', () => ({ token_endpoint: 'file:///etc/passwd' })],
  ])('%s: no token, and no secret is sent', async (_, change) => {
    const bodies: string[] = [];
    const handler = metadata(change);
    const outcome = await withIssuer((request, response, body) => {
      bodies.push(`${request.headers.authorization} ${body}`);
      handler(request, response, body);
    });
    expect(outcome).toMatchObject({ reason: 'upstream_token_unavailable' });
    expect(bodies).toEqual(['undefined ']);
  });
});
