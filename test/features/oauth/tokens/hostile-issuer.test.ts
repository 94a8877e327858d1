import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createAuthenticate } from '../../../../src/core/auth/authenticate.ts';
import { usualScopeClaims } from '../../../../src/core/auth/scopes/scope-names.ts';
import { fetchJson } from '../../../../src/features/oauth/tokens/fetch-json.ts';
import { discoverUrl } from '../../../../src/features/oauth/tokens/issuer-discovery.ts';
import { IssuerKeys } from '../../../../src/features/oauth/tokens/issuer-keys.ts';
import { createTokenAuthenticators } from '../../../../src/features/oauth/tokens/token-authenticator.ts';
import { requestWith } from '../../../core/auth/authentication-request.ts';
import { type Issuer, startIssuer, usualAudience } from '../../../support/issuer.ts';

let issuer: Issuer;
/** A host to which a hostile issuer tries to send the gateway. */
let inside: Issuer;
let failures: string[];
beforeEach(async () => {
  failures = [];
  [issuer, inside] = await Promise.all([startIssuer(), startIssuer()]);
});
afterEach(async () => {
  await Promise.all([issuer.close(), inside.close()]);
});

const textOf = (cause: unknown): string =>
  cause instanceof Error ? [cause.message, textOf(cause.cause)].join(' ') : '';

/** What a client with a token is told by a gateway that trusts both issuers. */
async function send(token: string): Promise<object> {
  const keysOf = ({ url }: Issuer): IssuerKeys =>
    new IssuerKeys({
      fetchKeys: async () => fetchJson(await discoverUrl(url, 'jwks_uri')),
      staleMs: 0,
      now: Date.now,
      onFailed: (cause) => failures.push(textOf(cause)),
      onRecovered: () => undefined,
    });
  const tokens = createTokenAuthenticators(
    {
      issuers: new Map([issuer, inside].map((each) => [each.url, keysOf(each)])),
      algorithms: ['ES256'],
      clockSkewMs: 0,
      scopeClaims: usualScopeClaims,
      hierarchy: new Map(),
      now: Date.now,
    },
    () => undefined,
  );
  const authenticate = createAuthenticate({ authenticators: [tokens(new Set([usualAudience]))] });
  return authenticate(requestWith({ authorization: `Bearer ${token}` }));
}

const say = (path: string, answer: (outgoing: ServerResponse) => unknown): void =>
  void issuer.instead.set(path, (_incoming, outgoing) => void answer(outgoing));
const metadataPath = '/.well-known/oauth-authorization-server';

/** Writes until the connection is closed, or everything is written. Counts the bytes. */
function pour(outgoing: ServerResponse, chunk: string, everyMs: number, most: number): { readonly bytes: number } {
  const poured = { bytes: 0 };
  const timer = setInterval(() => {
    if (poured.bytes >= most) return void outgoing.end();
    poured.bytes += chunk.length;
    outgoing.write(chunk);
  }, everyMs);
  outgoing.on('close', () => clearInterval(timer));
  onTestFinished(() => clearInterval(timer));
  return poured;
}

describe('a hostile issuer: its tokens are not checked (503), and nobody gets in', () => {
  it('with a huge key set: 512 KiB of it are read', async () => {
    let poured = { bytes: 0 };
    say('/keys', (outgoing) => {
      outgoing.write('{"keys":[{"kty":"');
      poured = pour(outgoing, 'a'.repeat(64 * 1024), 1, 64 * 1024 * 1024);
    });
    expect(await send(await issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(failures).toEqual([expect.stringContaining('/keys answered with more than 524288 bytes')]);
    expect(poured.bytes).toBeLessThan(16 * 1024 * 1024);
  });

  it('with thousands of keys: a token that names none is tried with none', async () => {
    const [{ publicJwk } = { publicJwk: {} }] = issuer.keys;
    const keys = Array.from({ length: 2_000 }, () => ({ ...publicJwk, kid: undefined }));
    say('/keys', (outgoing) => outgoing.end(JSON.stringify({ keys })));
    expect(await send(await issuer.token({ header: { kid: undefined } }))).toEqual({ reason: 'token_not_checked' });
    expect(failures).toEqual([expect.stringContaining('more than 100 keys')]);
  });

  it.each([
    ['keys', '/keys'],
    ['metadata', metadataPath],
  ])(
    'with a slow drip of %s: given up after 5 s',
    async (_, path) => {
      say(path, (outgoing) => void pour(outgoing, ' ', 20, 1_000_000));
      const startedAt = performance.now();
      expect(await send(await issuer.token())).toEqual({ reason: 'token_not_checked' });
      expect(performance.now() - startedAt).toBeLessThan(15_000);
      expect(failures).toEqual([expect.stringMatching(/did not answer completely/)]);
    },
    30_000,
  );

  it.each([
    ['keys', '/keys'],
    ['metadata', metadataPath],
  ])('with a redirect of its %s into the network: not followed', async (_, path) => {
    say(path, (outgoing) => outgoing.writeHead(302, { location: `${inside.url}${path}` }).end());
    expect(await send(await issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(inside.asked).toEqual([]);
  });

  it.each([
    [
      'a service for metadata of clouds (SSRF)',
      'https://169.254.169.254/latest/meta-data',
      'only this machine can reach',
    ],
    ['the same in IPv6 notation (SSRF)', 'https://[::ffff:169.254.169.254]/', 'only this machine can reach'],
    ['a link-local address (SSRF)', 'https://[fe80::1]/keys', 'only this machine can reach'],
    ['another host without TLS', 'http://keys.example/keys', 'without https'],
    ['a file', 'file:///etc/passwd', 'without https'],
  ])('whose metadata names keys at %s: not fetched', async (_, jwks_uri, detail) => {
    say(metadataPath, (outgoing) => outgoing.end(JSON.stringify({ issuer: issuer.url, jwks_uri })));
    expect(await send(await issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(failures).toEqual([expect.stringContaining(detail)]);
  });

  it.each(['https://127.0.0.1:6379/', 'https://localhost/', 'https://[::1]/keys'])(
    'elsewhere, whose metadata names keys on this machine (SSRF), at %s: not fetched',
    async (jwks_uri) => {
      const remote = 'https://login.example.com';
      const fetched: string[] = [];
      const read = async (url: URL) => {
        fetched.push(url.href);
        return { issuer: remote, jwks_uri };
      };
      const refused = await discoverUrl(remote, 'jwks_uri', read).catch(textOf);
      expect(refused).toContain('only this machine can reach');
      expect(fetched).toEqual([`${remote}${metadataPath}`]);
    },
  );

  it('whose metadata are those of another issuer (mix-up): its keys are not used', async () => {
    say(metadataPath, (outgoing) =>
      outgoing.end(JSON.stringify({ issuer: inside.url, jwks_uri: `${issuer.url}/keys` })),
    );
    expect(await send(await issuer.token())).toEqual({ reason: 'token_not_checked' });
    expect(issuer.asked).toEqual([metadataPath]);
  });
});

describe('a hostile issuer that is trusted beside another', () => {
  it.each([
    ['signs a token in the name of the other (mix-up)', () => ({ iss: inside.url }), 'signature'],
    ['signs a token in the name of nobody', () => ({ iss: undefined }), 'iss'],
    ['signs a token in the name of an issuer that nobody trusts', () => ({ iss: 'https://evil.example' }), 'iss'],
    ['signs a token for another audience', () => ({ aud: 'https://other.example/mcp' }), 'aud'],
  ])('%s: 401', async (_, claims, why) => {
    expect(await send(await issuer.token({ claims: claims() }))).toMatchObject({
      reason: 'credentials_invalid',
      detail: { why },
    });
  });
});
