import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAuthenticate } from '../../../../src/core/auth/authenticate.ts';
import { BearerToken } from '../../../../src/core/auth/bearer-token.ts';
import { type CredentialBound, CredentialWatch } from '../../../../src/core/auth/credential-watch.ts';
import type { Authenticate, Challenge, Identity } from '../../../../src/core/auth/identity.ts';
import { usualScopeClaims } from '../../../../src/core/auth/scopes/scope-names.ts';
import { TokenIntrospection } from '../../../../src/features/oauth/tokens/introspection.ts';
import {
  askEndpoint,
  type IntrospectionEndpoint,
  type TokenAnswer,
} from '../../../../src/features/oauth/tokens/introspection-endpoint.ts';
import { createTokenAuthenticators } from '../../../../src/features/oauth/tokens/token-authenticator.ts';
import { requestWith } from '../../../core/auth/authentication-request.ts';
import { usualAudience } from '../../../support/issuer.ts';
import { waitFor } from '../../../support/wait-for.ts';

const issuer = 'https://login.example.com';
const cacheMs = 30_000;
const staleMs = 60_000;

let requests: { readonly form: URLSearchParams; readonly headers: IncomingMessage['headers'] }[];
let answer: (token: string | null, response: ServerResponse) => unknown;
let aheadMs: number;
let failures: unknown[];
let recoveries: number;
let origin: string;
let close: () => Promise<unknown>;

const now = (): number => Date.now() + aheadMs;
const inSeconds = (s: number): number => Math.floor(now() / 1_000) + s;
const active = (more: object = {}) => ({
  ...{ active: true, iss: issuer, sub: 'ada', client_id: 'app', aud: usualAudience, scope: 'read write' },
  ...{ exp: inSeconds(300), ...more },
});
const json =
  (value: unknown, status = 200) =>
  (_token: string | null, response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

beforeEach(async () => {
  [requests, failures, recoveries, aheadMs] = [[], [], 0, 0];
  answer = (token, response) => json(active())(token, response);
  const server = createServer(async (incoming, response) => {
    const form = new URLSearchParams(Buffer.concat(await incoming.toArray()).toString());
    requests.push({ form, headers: incoming.headers });
    answer(form.get('token'), response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => {
    server.closeAllConnections();
    server.close();
    return once(server, 'close');
  };
});
afterEach(() => close());

const rules = { clockSkewMs: 0, hierarchy: new Map(), scopeClaims: [...usualScopeClaims, 'groups', 'a.roles'] };

const introspectionBy = (ask: (token: string) => Promise<TokenAnswer>): TokenIntrospection =>
  new TokenIntrospection({
    ...{ ...rules, issuer, ask, cacheMs, staleMs, now },
    onFailed: (cause) => failures.push(cause),
    onRecovered: () => recoveries++,
  });

function authenticateBy(endpoint: Partial<IntrospectionEndpoint> = {}): Authenticate {
  const by = introspectionBy((token) =>
    askEndpoint({ url: async () => new URL(origin), protocol: 'rfc7662', ...endpoint }, token),
  );
  const tokens = createTokenAuthenticators({ ...rules, issuers: new Map(), algorithms: [], now }, () => undefined, {
    by,
    issuer,
    areAll: false,
  });
  return createAuthenticate({ authenticators: [tokens(new Set([usualAudience, 'app']))] });
}

const send = async (token: string, by: Authenticate) =>
  (await by(requestWith({ authorization: `Bearer ${token}` }))) as Identity & Challenge;

describe('an opaque token', () => {
  it('is checked at the endpoint, as the gateway with its secret, and says who its bearer is', async () => {
    const by = authenticateBy({ clientId: 'the gate', clientSecret: 'a:b&c' });
    const identity = await send('opaque', by);
    expect(identity.principal).toEqual({ issuer, subject: 'ada', client: 'app' });
    expect([...(identity.scopes ?? [])]).toEqual(['read', 'write']);
    expect(Object.fromEntries(requests[0]?.form ?? [])).toEqual({ token: 'opaque', token_type_hint: 'access_token' });
    const [, basic = ''] = requests[0]?.headers.authorization?.split(' ') ?? [];
    expect(Buffer.from(basic, 'base64').toString()).toBe('the+gate:a%3Ab%26c');
  });

  it('is asked about once for requests at the same time, and again only after the cache time', async () => {
    const by = authenticateBy();
    const [first, second] = await Promise.all([send('one', by), send('one', by), send('two', by)]);
    expect(second).toBe(first);
    expect(requests).toHaveLength(2);
    aheadMs = cacheMs - 1_000;
    expect(await send('one', by)).toBe(first);
    expect(requests).toHaveLength(2);
    aheadMs = cacheMs + 1_000;
    expect(await send('one', by)).toBe(first);
    expect(requests).toHaveLength(3);
  });

  it('that was revoked is refused after the cache time, and remembered for a short time', async () => {
    const by = authenticateBy();
    await send('one', by);
    answer = json({ active: false });
    aheadMs = cacheMs + 1_000;
    expect(await send('one', by)).toMatchObject({ reason: 'credentials_invalid', detail: { why: 'inactive' } });
    expect(await send('one', by)).toMatchObject({ reason: 'credentials_invalid' });
    expect(requests).toHaveLength(2);
  });

  it('that was revoked ends an open stream after the cache time', async () => {
    const by = authenticateBy();
    const watch = new CredentialWatch();
    let isEnded = false;
    const member: CredentialBound = {
      identity: await send('one', by),
      expire() {
        isEnded = true;
      },
    };
    watch.hold(member);
    watch.sweep();
    expect(requests).toHaveLength(1);
    aheadMs = cacheMs + 1_000;
    watch.sweep();
    await waitFor(() => requests.length === 2);
    await send('one', by);
    watch.sweep();
    expect(isEnded).toBe(false);
    answer = json({ active: false });
    aheadMs = 3 * cacheMs;
    await waitFor(() => {
      watch.sweep();
      return isEnded;
    });
    watch.close();
  });

  it('with other scopes than before ends what was opened with the earlier ones', async () => {
    const by = authenticateBy();
    const before = await send('one', by);
    answer = json(active({ scope: 'read' }));
    aheadMs = cacheMs + 1_000;
    expect([...((await send('one', by)).scopes ?? [])]).toEqual(['read']);
    expect(before.expiresAtMs).toBe(0);
  });

  it('has scopes in the configured claims; a group with blanks is one scope', async () => {
    answer = json(active({ scope: undefined, groups: ['MCP Admins', 7], a: { roles: ['user'] } }));
    expect([...((await send('one', authenticateBy())).scopes ?? [])]).toEqual(['MCP Admins', 'user']);
  });

  it('without aud is only for the client that it was issued to', async () => {
    answer = json(active({ aud: undefined }));
    expect(await send('one', authenticateBy())).toHaveProperty('principal');
    answer = json(active({ aud: undefined, client_id: 'another' }));
    expect(await send('two', authenticateBy())).toMatchObject({ detail: { why: 'aud' } });
  });

  it.each([
    ['is for another audience', { aud: 'https://other.example' }, 'aud'],
    ['is of another issuer (mix-up)', { iss: 'https://evil.example' }, 'iss'],
    ['names nobody', { sub: undefined }, 'sub'],
    ['has expired, though the endpoint calls it active', { exp: 1 }, 'exp'],
    ['is bound to a key', { cnf: { jkt: 'x' } }, 'cnf'],
  ])('that %s is refused', async (_name, claims, why) => {
    answer = json(active(claims));
    expect(await send('one', authenticateBy())).toMatchObject({ reason: 'credentials_invalid', detail: { why } });
  });

  it('longer than 8 KiB is refused unread', async () => {
    expect(await send('a'.repeat(9_000), authenticateBy())).toMatchObject({ reason: 'credentials_invalid' });
    expect(requests).toHaveLength(0);
  });
});

describe('an endpoint that', () => {
  it.each([
    ['fails', json({}, 500)],
    ['does not accept the gateway', json({}, 401)],
    ['says nothing about the token', json({})],
    ['says true in words', json({ active: 'true' })],
    ['names an expiry that is not a number', json({ ...active(), exp: 'tomorrow' })],
    ['answers with a page', (_: unknown, response: ServerResponse) => response.end('<html>')],
    ['answers with a list', json([{ active: true }])],
    [
      'redirects to an address of a metadata service',
      (_: unknown, response: ServerResponse) => response.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
    ],
    [
      'answers with a huge document',
      (_: unknown, response: ServerResponse) =>
        response.end(JSON.stringify({ active: true, pad: 'a'.repeat(600_000) })),
    ],
    ['breaks off', (_: unknown, response: ServerResponse) => response.destroy()],
  ] as const)('%s makes no login necessary: the token could not be checked', async (_name, fault) => {
    const by = authenticateBy();
    answer = fault as typeof answer;
    expect(await send('one', by)).toMatchObject({ reason: 'token_not_checked' });
    expect(JSON.stringify(failures.map(String))).not.toContain('one');
    expect(failures).toHaveLength(1);
    answer = json(active());
    expect(await send('one', by)).toHaveProperty('principal');
    expect(recoveries).toBe(1);
  });

  it('drips slowly is given up after five seconds', async () => {
    answer = (_token, response) => {
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    };
    expect(await send('one', authenticateBy())).toMatchObject({ reason: 'token_not_checked' });
  }, 10_000);

  it('gets at most 256 requests at once, however many tokens strangers invent', async () => {
    const held: ((answer: TokenAnswer) => void)[] = [];
    const by = introspectionBy(() => new Promise((resolve) => held.push(resolve)));
    const invented = (i: number) => new BearerToken(`invented-${i}`, 'Bearer', `192.0.2.${i % 10}`);
    const outcomes = Array.from({ length: 300 }, (_, i) => by.check(invented(i)));
    expect(await Promise.all(outcomes.slice(192))).toEqual(Array(108).fill({ reason: 'token_not_checked' }));
    expect(held).toHaveLength(192);
    for (const resolve of held) resolve({ isActive: false, claims: {} });
    expect(
      new Set((await Promise.all(outcomes.slice(0, 192))).map((outcome) => 'reason' in outcome && outcome.reason)),
    ).toEqual(new Set(['credentials_invalid']));
    void by.check(new BearerToken('one more'));
    expect(held).toHaveLength(193);
  });

  it('[G-14] [S-22] [P8] gets questions of users that it knows, and of new ones, however many tokens a stranger invents', async () => {
    const held: ((answer: TokenAnswer) => void)[] = [];
    const by = introspectionBy(() => new Promise((resolve) => held.push(resolve)));
    const user = new BearerToken('of a user', 'Bearer', '192.0.2.1');
    const isValid = { isActive: true, claims: active() };
    const first = by.check(user);
    held.pop()?.(isValid);
    expect(await first).toHaveProperty('identity');
    for (let i = 0; i < 1_000; i += 1) void by.check(new BearerToken(`invented-${i}`, 'Bearer', '192.0.2.9'));
    expect(held).toHaveLength(64);
    aheadMs = cacheMs + 1_000;
    const [again, other] = [by.check(user), by.check(new BearerToken('of a new user', 'Bearer', '192.0.2.2'))];
    expect(held).toHaveLength(66);
    for (const resolve of held.splice(64)) resolve(isValid);
    expect(await Promise.all([again, other])).toEqual([
      await first,
      expect.objectContaining({ audiences: [usualAudience] }),
    ]);
  });

  it('is silent about a token that was valid: the token lives on, at most for the time for stale keys', async () => {
    const by = authenticateBy();
    const identity = await send('one', by);
    const held: ServerResponse[] = [];
    answer = (_token, response) => held.push(response);
    aheadMs = cacheMs + 1_000;
    expect(await send('one', by)).toBe(identity);
    expect(held).toHaveLength(1);
    aheadMs = cacheMs + staleMs - 20_000;
    expect(await send('one', by)).toBe(identity);
    json({ active: false })(null, held[0] as ServerResponse);
    await waitFor(() => identity.expiresAtMs === 0);
    expect(await send('one', by)).toMatchObject({ reason: 'credentials_invalid' });
  });

  it('is away does not end open streams at once, but after the time for stale keys', async () => {
    const by = authenticateBy();
    const identity = await send('one', by);
    answer = json({}, 500);
    aheadMs = cacheMs + 1_000;
    identity.recheck?.();
    await waitFor(() => failures.length === 1);
    expect(identity.expiresAtMs).toBeGreaterThan(0);
    aheadMs = cacheMs + staleMs + 1_000;
    identity.recheck?.();
    expect(identity.expiresAtMs).toBe(0);
  });
});

describe("Google's endpoint", () => {
  const google = () => authenticateBy({ protocol: 'tokeninfo' });

  it('gets the token in a header, and writes numbers as texts', async () => {
    const told = { azp: 'app', aud: 'app', sub: '117', scope: 'openid', exp: `${inSeconds(300)}`, expires_in: '300' };
    answer = json(told);
    const identity = await send('ya29.token', google());
    expect(identity.principal).toEqual({ issuer, subject: '117', client: 'app' });
    expect(requests[0]?.headers.authorization).toBe('Bearer ya29.token');
    expect(requests[0]?.form.size).toBe(0);
  });

  it('says with 400 that a token is invalid', async () => {
    answer = json({ error: 'invalid_token' }, 400);
    expect(await send('ya29.token', google())).toMatchObject({ reason: 'credentials_invalid' });
  });
});
