import { createHmac, createPublicKey } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAuthenticate } from '../../../../src/core/auth/authenticate.ts';
import type { Authenticate, Challenge, Identity } from '../../../../src/core/auth/identity.ts';
import { Authorization } from '../../../../src/core/auth/scopes/authorization.ts';
import { usualScopeClaims } from '../../../../src/core/auth/scopes/scope-names.ts';
import { ScopeRules } from '../../../../src/core/auth/scopes/scope-rules.ts';
import { fetchJson } from '../../../../src/features/oauth/tokens/fetch-json.ts';
import { discoverUrl } from '../../../../src/features/oauth/tokens/issuer-discovery.ts';
import { IssuerKeys } from '../../../../src/features/oauth/tokens/issuer-keys.ts';
import { createTokenAuthenticators } from '../../../../src/features/oauth/tokens/token-authenticator.ts';
import { requestWith } from '../../../core/auth/authentication-request.ts';
import { answerWith, type Issuer, startIssuer, usualAudience } from '../../../support/issuer.ts';
import { waitFor } from '../../../support/wait-for.ts';

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const metadataUrl = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp';
const staleMs = 60 * 60_000;
const skewMs = 30_000;

let issuer: Issuer;
let other: Issuer;
/** How far the gateway's clock is ahead. */
let aheadMs: number;
let failures: unknown[];
let recoveries: number;
/** Why tokens were refused. */
let reasons: string[];
let ask: Authenticate;

const now = (): number => Date.now() + aheadMs;

const keysOf = ({ url }: Issuer): IssuerKeys =>
  new IssuerKeys({
    fetchKeys: async () => fetchJson(await discoverUrl(url, 'jwks_uri')),
    staleMs,
    now,
    onFailed: (cause) => failures.push(cause),
    onRecovered: () => recoveries++,
  });

const authenticateFor = (issuers: readonly Issuer[], scopes: readonly string[] = []): Authenticate => {
  const authorization = new Authorization({
    rules: new ScopeRules({ requiredScopes: scopes, toolScopes: {} }),
    resourceMetadata: new Map([['/mcp', metadataUrl]]),
  });
  const tokens = createTokenAuthenticators(
    {
      issuers: new Map(issuers.map((each) => [each.url, keysOf(each)])),
      algorithms,
      clockSkewMs: skewMs,
      scopeClaims: usualScopeClaims,
      hierarchy: new Map([
        ['admin', ['write']],
        ['write', ['read']],
      ]),
      now,
    },
    () => undefined,
  );
  const authenticators = [tokens(new Set([usualAudience]))];
  const parametersFor = authorization.parametersFor.bind(authorization);
  return authorization.guard(
    createAuthenticate({ authenticators, parametersFor: (incoming) => parametersFor(incoming) }),
  );
};

const send = (authorization?: string, by = ask) =>
  by(requestWith(authorization === undefined ? {} : { authorization }));

const bearing = async (token: string | Promise<string>, by = ask): Promise<Identity & Challenge> => {
  const outcome = (await send(`Bearer ${await token}`, by)) as Identity & Challenge;
  if (outcome.detail !== undefined) reasons.push(outcome.detail.why);
  return outcome;
};

beforeEach(async () => {
  aheadMs = 0;
  failures = [];
  recoveries = 0;
  reasons = [];
  [issuer, other] = await Promise.all([startIssuer(), startIssuer()]);
  ask = authenticateFor([issuer]);
});

afterEach(async () => {
  await Promise.all([issuer.close(), other.close()]);
});

const refused = {
  reason: 'credentials_invalid',
  wwwAuthenticate: expect.stringMatching(
    /^Bearer realm="mcp-gangway", error="invalid_token", error_description="[\w ]+", resource_metadata="[^"]+"$/,
  ),
  data: { error: 'invalid_token', error_description: expect.stringMatching(/^[\w ]+$/) },
  detail: expect.objectContaining({ why: expect.any(String) }),
};

describe('a token', () => {
  it('says who its bearer is, by issuer, subject and client, and what they may', async () => {
    const identity = await bearing(issuer.token({ claims: { scope: 'read write', tenant: 'blue' } }));
    expect(identity.principal).toEqual({ issuer: issuer.url, subject: 'ada', client: 'app' });
    expect([...(identity.scopes ?? [])]).toEqual(['read', 'write']);
    expect(identity.claims['tenant']).toBe('blue');
    expect(identity.expiresAtMs).toBe((identity.claims['exp'] as number) * 1_000 + skewMs);
  });

  it('is answered for at once the second time, without a promise', async () => {
    const token = await issuer.token();
    const first = await bearing(token);
    expect(send(`Bearer ${token}`)).toBe(first);
    expect(issuer.asked).toHaveLength(2);
  });

  it.each([
    ['azp', { client_id: undefined, azp: 'web' }, 'web'],
    ['cid', { client_id: undefined, cid: 'web' }, 'web'],
    ['no client', { client_id: undefined }, ''],
    ['a client that is no text', { client_id: { a: 1 } }, ''],
  ])('names its client by %s', async (_name, claims, client) => {
    expect((await bearing(issuer.token({ claims }))).principal).toMatchObject({ client });
  });

  it.each([
    ['scp as a list', { scp: ['read', 'list'] }, ['read', 'list']],
    ['scp as a text', { scp: 'read list' }, ['read', 'list']],
    ['scope as a list', { scope: ['read'] }, ['read']],
    ['no scope', {}, []],
    ['what is none', { scope: 7, scp: [null, {}] }, []],
    ['one that stands for others', { scope: 'admin' }, ['admin', 'write', 'read']],
  ])('has its scopes in %s', async (_name, claims, scopes) => {
    expect([...((await bearing(issuer.token({ claims }))).scopes ?? [])]).toEqual(scopes);
  });

  it.each([
    ['is for another audience', { aud: 'https://mcp.example.com/other' }],
    ['is for the whole origin', { aud: 'https://mcp.example.com' }],
    ['is for nobody', { aud: undefined }],
    ['is for a list without us', { aud: ['https://a.example', 7] }],
    ['has expired', { exp: Math.floor(Date.now() / 1_000) - 60 }],
    ['never expires', { exp: undefined }, 'no_exp'],
    ['expires at what is no time', { exp: 'tomorrow' }, 'no_exp'],
    ['is not yet valid', { nbf: Math.floor(Date.now() / 1_000) + 60 }],
    ['names nobody', { sub: undefined }],
    ['names an empty subject', { sub: '' }],
    ['has a subject that is no text', { sub: 7 }],
    ['has an endless subject', { sub: 'a'.repeat(2_000) }],
    ['is of an issuer that is not trusted', { iss: 'https://evil.example' }],
    ['is of an issuer with a slash more', { iss: 'slash' }],
    ['is of no issuer', { iss: undefined }],
    ['is of a list of issuers', { iss: ['a'] }],
    ['is bound to a key of its client', { cnf: { jkt: 'abc' } }],
  ])('[B19] is refused if it %s', async (_name, claims, why?: string) => {
    const iss = 'iss' in claims && claims.iss === 'slash' ? { iss: `${issuer.url}/` } : {};
    expect(await bearing(issuer.token({ claims: { ...claims, ...iss } }))).toEqual(refused);
    expect(reasons).toEqual([why ?? Object.keys(claims)[0]]);
  });

  it('[P-05] is refused with what was expected and seen, and the client is told what gives nothing away', async () => {
    const nowS = Math.floor(Date.now() / 1_000);
    const seenFor = async (claims: object) => {
      const { detail: because, wwwAuthenticate } = await bearing(issuer.token({ claims: claims as never }));
      return { ...because, header: /error_description="([^"]*)"/.exec(wwwAuthenticate ?? '')?.[1] };
    };
    expect(await seenFor({ exp: nowS - 60 })).toMatchObject({
      why: 'exp',
      expected: expect.stringMatching(/^later than 20/),
      seen: new Date((nowS - 60) * 1_000).toISOString(),
      header: 'The access token has expired',
    });
    expect(await seenFor({ aud: ['https://a.example', 'b\u001b[31m'] })).toMatchObject({
      why: 'aud',
      expected: [usualAudience],
      seen: ['https://a.example', 'b?[31m'],
      header: 'The access token was issued for another resource',
    });
    expect(await seenFor({ iss: `https://evil.example/${'x'.repeat(500)}` })).toMatchObject({
      why: 'iss',
      expected: [issuer.url],
      seen: expect.stringMatching(/^https:\/\/evil\.example\/x{99}$/),
      header: 'The issuer of the access token is not trusted here',
    });
    expect(await seenFor({ sub: 'secret'.repeat(400) })).toEqual({
      why: 'sub',
      header: 'The access token has no valid subject',
    });
  });

  it('is taken if one of several audiences is meant, and within the tolerance for clocks', async () => {
    const nowS = Math.floor(Date.now() / 1_000);
    const claims = { aud: ['https://a.example', usualAudience], exp: nowS - 5, nbf: nowS + 5 };
    expect(await bearing(issuer.token({ claims }))).toHaveProperty('principal');
  });

  it('[B19] is refused if another issuer signed it in the name of a trusted one', async () => {
    const [key] = other.keys;
    expect(await bearing(issuer.token({ key: { ...key, kid: issuer.keys[0]?.kid } as never }))).toEqual(refused);
    expect(await bearing(other.token({ claims: { iss: issuer.url } }))).toEqual(refused);
  });

  it('of each of several issuers is verified by its own keys alone', async () => {
    ask = authenticateFor([issuer, other]);
    expect((await bearing(issuer.token())).principal).toMatchObject({ issuer: issuer.url });
    expect((await bearing(other.token())).principal).toMatchObject({ issuer: other.url });
    other.keys = [{ ...other.keys[0], kid: issuer.keys[0]?.kid } as never];
    expect(await bearing(issuer.token({ key: other.keys[0] as never }))).toEqual(refused);
  });

  it('[B19] without a signature, or signed with the public key as a secret, is refused', async () => {
    const payload = { iss: issuer.url, sub: 'ada', aud: usualAudience };
    const none = new UnsecuredJWT(payload).setExpirationTime('5m').encode();
    expect(await bearing(none)).toEqual(refused);

    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const pem = createPublicKey({ key: issuer.keys[0]?.publicJwk as never, format: 'jwk' }).export({
      type: 'spki',
      format: 'pem',
    });
    for (const secret of [pem, JSON.stringify(issuer.keys[0]?.publicJwk), '']) {
      const head = part({ alg: 'HS256', kid: issuer.keys[0]?.kid });
      const signed = `${head}.${part({ ...payload, exp: Math.floor(Date.now() / 1_000) + 60 })}`;
      const hmac = createHmac('sha256', secret).update(signed).digest('base64url');
      expect(await bearing(`${signed}.${hmac}`)).toEqual(refused);
    }
  });

  it('[B19] of which one character was changed, anywhere, is refused', async () => {
    const token = await issuer.token({ claims: { scope: 'read' } });
    const [head = '', payload = '', signature = ''] = token.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...claims, scope: 'admin' })).toString('base64url');
    expect(await bearing(`${head}.${forged}.${signature}`)).toEqual(refused);
    const flipped = (signature[5] === 'A' ? 'B' : 'A') + signature.slice(6);
    expect(await bearing(`${head}.${payload}.${signature.slice(0, 5)}${flipped}`)).toEqual(refused);
    expect(await bearing(token)).toHaveProperty('principal');
  });

  it.each([
    ['no JWT', 'abc'],
    ['one without parts', '../../../core/auth'],
    ['an encrypted one', 'a.b.c.d.e'],
    ['a list', `${Buffer.from('[]').toString('base64url')}.${Buffer.from('[]').toString('base64url')}.x`],
    ['a very long one', `a.${'a'.repeat(9_000)}.b`],
  ])('[B19] that is %s is refused without asking anybody', async (_name, token) => {
    expect(await bearing(token)).toEqual(refused);
    expect(issuer.asked).toEqual([]);
  });

  it.each([
    ['an algorithm that is not allowed', 'ES384', {}],
    ['an ID token', 'ES256', { typ: 'id+jwt' }],
    ['a logout token', 'ES256', { typ: 'logout+jwt' }],
  ])('[B19] that is %s is refused', async (_name, alg, header) => {
    issuer.keys = [await issuer.newKey(alg)];
    expect(await bearing(issuer.token({ header }))).toEqual(refused);
  });

  it.each([
    ['jku', () => ({ jku: `${other.url}/keys` })],
    ['jwk', () => ({ jwk: other.keys[0]?.publicJwk })],
    ['x5u', () => ({ x5u: `${other.url}/keys` })],
  ])('[B19] cannot bring its own key by %s', async (_name, header) => {
    const key = other.keys[0] as never;
    expect(await bearing(issuer.token({ key, header: { ...header(), kid: issuer.keys[0]?.kid } }))).toEqual(refused);
    expect(other.asked).toEqual([]);
  });

  it.each(['RS256', 'PS256', 'EdDSA'])('signed with %s is taken', async (alg) => {
    issuer.keys = [await issuer.newKey(alg)];
    expect(await bearing(issuer.token())).toHaveProperty('principal');
  });

  it('ends when it expires, also one that was verified before', async () => {
    const token = await issuer.token();
    expect(await bearing(token)).toHaveProperty('principal');
    aheadMs = 300_000 + skewMs + 1_000;
    expect(await bearing(token)).toEqual(refused);
  });
});

describe('a request', () => {
  it('[B19] without a token is told where to get one, and with which scopes', () => {
    expect(send()).toEqual({
      reason: 'credentials_required',
      wwwAuthenticate: `Bearer realm="mcp-gangway", resource_metadata="${metadataUrl}"`,
    });
    expect(send(undefined, authenticateFor([issuer], ['files:read', 'base']))).toEqual({
      reason: 'credentials_required',
      wwwAuthenticate: `Bearer realm="mcp-gangway", scope="files:read base", resource_metadata="${metadataUrl}"`,
    });
  });

  it.each(['Basic YWRhOnNlY3JldA==', 'DPoP abc', 'Bearer', 'Bearer a b', 'abc', 'Bearer "abc"'])(
    '[B19] with Authorization: %s is refused',
    async (authorization) => {
      expect(await send(authorization)).toEqual(refused);
    },
  );

  it('may write the scheme in small letters', async () => {
    expect(await send(`bearer ${await issuer.token()}`)).toHaveProperty('principal');
  });

  it('[B20] whose token lacks what every request needs gets the scopes told, with those that it has', async () => {
    ask = authenticateFor([issuer], ['files:read', 'base']);
    expect(await bearing(issuer.token({ claims: { scope: 'base unknown' } }))).toEqual({
      reason: 'insufficient_scope',
      wwwAuthenticate: `Bearer realm="mcp-gangway", error="insufficient_scope", scope="files:read base", resource_metadata="${metadataUrl}"`,
    });
    expect(await bearing(issuer.token({ claims: { scope: 'base files:read' } }))).toHaveProperty('principal');
  });
});

describe('the keys of an issuer', () => {
  it('are fetched again for an unknown key, at most once in ten seconds', async () => {
    await bearing(issuer.token());
    expect(issuer.asked.filter((path) => path === '/keys')).toHaveLength(1);
    issuer.keys = [...issuer.keys, await issuer.newKey()];
    aheadMs += 11_000;
    expect(await bearing(issuer.token())).toHaveProperty('principal');
    const key = await issuer.newKey('ES256', 'made-up');
    for (let i = 0; i < 20; i++) expect(await bearing(issuer.token({ key }))).toEqual(refused);
    expect(new Set(reasons)).toEqual(new Set(['kid']));
    expect(issuer.asked.filter((path) => path === '/keys')).toHaveLength(2);
  });

  it('are fetched once for tokens that come together', async () => {
    const tokens = await Promise.all(Array.from({ length: 10 }, (_, i) => issuer.token({ claims: { sub: `${i}` } })));
    const all = await Promise.all(tokens.map((token) => bearing(token)));
    expect(all.every((identity) => 'principal' in identity)).toBe(true);
    expect(issuer.asked).toHaveLength(2);
  });

  it('that were taken back end the tokens that were verified by them', async () => {
    const token = await issuer.token();
    expect(await bearing(token)).toHaveProperty('principal');
    issuer.keys = [await issuer.newKey()];
    aheadMs += 11 * 60_000;
    const longer = await issuer.token({ claims: { exp: Math.floor(Date.now() / 1_000) + 3_600 } });
    expect(await bearing(longer)).toHaveProperty('principal');
    aheadMs -= 10 * 60_000; // the token itself has not expired
    expect(await bearing(token)).toEqual(refused);
  });

  it('that are the same again leave what was verified by them as it is', async () => {
    const token = await issuer.token({ claims: { exp: Math.floor(Date.now() / 1_000) + 3_600 } });
    const first = await bearing(token);
    aheadMs += 11 * 60_000;
    expect(send(`Bearer ${token}`)).toBe(first);
    await bearing(issuer.token({ claims: { exp: Math.floor(Date.now() / 1_000) + 3_600, sub: 'bob' } }));
    await waitFor(() => issuer.asked.filter((path) => path === '/keys').length === 2);
    await waitFor(() => send(`Bearer ${token}`) === first);
  });

  it('without names are all tried', async () => {
    const keys = [await issuer.newKey(), await issuer.newKey()];
    issuer.keys = keys.map((key) => ({ ...key, publicJwk: { ...key.publicJwk, kid: undefined } }) as never);
    for (const key of keys) {
      expect(await bearing(issuer.token({ key, header: { kid: undefined } }))).toHaveProperty('principal');
    }
    const stranger = await issuer.newKey();
    expect(await bearing(issuer.token({ key: stranger, header: { kid: undefined } }))).toEqual(refused);
  });

  it('go on to be good for an hour without their issuer, then tokens are not judged', async () => {
    const claims = { exp: Math.floor(Date.now() / 1_000) + 24 * 3_600 };
    const token = await issuer.token({ claims });
    expect(await bearing(token)).toHaveProperty('principal');
    issuer.instead.set('/keys', answerWith(503));
    aheadMs += 65 * 60_000;
    expect(await bearing(token)).toHaveProperty('principal');
    expect(await bearing(issuer.token({ claims: { ...claims, sub: 'bob' } }))).toHaveProperty('principal');
    aheadMs += 6 * 60_000;
    expect(await bearing(token)).toEqual({ reason: 'token_not_checked' });
    expect(failures).toHaveLength(1);
    issuer.instead.clear();
    aheadMs += 11_000;
    expect(await bearing(token)).toHaveProperty('principal');
    expect(recoveries).toBe(1);
  });

  it('that were never had make tokens be not judged, rather than refused', async () => {
    issuer.instead.set('/keys', answerWith(500));
    expect(await bearing(issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(await bearing(issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(failures).toHaveLength(1);
    expect(issuer.asked).toHaveLength(2);
  });

  it('that cannot be asked for leave a token with an unknown key not judged', async () => {
    expect(await bearing(issuer.token())).toHaveProperty('principal');
    issuer.instead.set('/keys', answerWith(502));
    aheadMs += 11_000;
    const key = await issuer.newKey();
    expect(await bearing(issuer.token({ key }))).toEqual({ reason: 'token_not_checked' });
    expect(await bearing(issuer.token())).toHaveProperty('principal');
  });

  it.each([
    ['no keys', (outgoing: import('node:http').ServerResponse) => outgoing.end('{"keys":[]}')],
    ['no list', (outgoing) => outgoing.end('{"keys":{}}')],
    ['no JSON', (outgoing) => outgoing.end('<html>')],
    ['a list', (outgoing) => outgoing.end('[]')],
    ['a redirect', (outgoing) => outgoing.writeHead(302, { location: `${other.url}/keys` }).end()],
    ['too much', (outgoing) => outgoing.end(`{"keys":[{"kty":"${'a'.repeat(600_000)}"}]}`)],
  ] satisfies [string, (outgoing: import('node:http').ServerResponse) => unknown][])(
    'are none where there is %s',
    async (_name, answer) => {
      issuer.instead.set('/keys', (_incoming, outgoing) => void answer(outgoing));
      expect(await bearing(issuer.token())).toEqual({ reason: 'token_not_checked' });
      expect(other.asked).toEqual([]);
      expect(failures).toHaveLength(1);
    },
  );

  it('never come from metadata in the name of another issuer, nor over http from elsewhere', async () => {
    const place = '/.well-known/oauth-authorization-server';
    const say = (value: object) =>
      issuer.instead.set(place, (_incoming, outgoing) => void outgoing.end(JSON.stringify(value)));
    for (const metadata of [
      { issuer: other.url, jwks_uri: `${issuer.url}/keys` },
      { issuer: issuer.url, jwks_uri: 'http://keys.example/keys' },
      { issuer: issuer.url, jwks_uri: 'file:///etc/passwd' },
      { issuer: issuer.url, jwks_uri: 7 },
      { issuer: issuer.url },
    ]) {
      say(metadata);
      await expect(discoverUrl(issuer.url, 'jwks_uri')).rejects.toThrow('metadata of the authorization server');
    }
    expect(issuer.asked).not.toContain('/keys');
  });
});

describe('the metadata of an issuer', () => {
  it('is looked for at the places of the specification, in its order', async () => {
    const tenant = await startIssuer('/tenant');
    const placesOf = (path: string) => [
      `/.well-known/oauth-authorization-server${path}`,
      `/.well-known/openid-configuration${path}`,
      ...(path === '' ? [] : [`${path}/.well-known/openid-configuration`]),
    ];
    for (const [at, path] of [
      [issuer, ''],
      [tenant, '/tenant'],
    ] as const) {
      const places = placesOf(path);
      for (const place of places) at.instead.set(place, answerWith(404));
      await expect(discoverUrl(at.url, 'jwks_uri')).rejects.toThrow();
      expect(at.asked).toEqual(places);
      const last = places.at(-1) as string;
      at.instead.set(
        last,
        (_incoming, outgoing) =>
          void outgoing.end(JSON.stringify({ issuer: at.url, jwks_uri: 'https://keys.example/' })),
      );
      expect((await discoverUrl(at.url, 'jwks_uri')).href).toBe('https://keys.example/');
    }
    await tenant.close();
  });

  it('that does not come in time is given up', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const url = new URL(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
    await expect(fetchJson(url)).rejects.toThrow(/did not answer completely/);
    silent.closeAllConnections();
    silent.close();
  });
});
