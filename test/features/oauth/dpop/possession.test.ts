import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuthenticate } from '../../../../src/core/auth/authenticate.ts';
import { nextNonceOf, proofAlgorithms } from '../../../../src/core/auth/challenges.ts';
import type { Authenticate, Challenge, Identity } from '../../../../src/core/auth/identity.ts';
import { usualScopeClaims } from '../../../../src/core/auth/scopes/scope-names.ts';
import { createPossessionCheck, type PossessionOptions } from '../../../../src/features/oauth/dpop/possession.ts';
import { UsedProofs } from '../../../../src/features/oauth/dpop/used-proofs.ts';
import { fetchJson } from '../../../../src/features/oauth/tokens/fetch-json.ts';
import { IssuerKeys } from '../../../../src/features/oauth/tokens/issuer-keys.ts';
import { createTokenAuthenticators } from '../../../../src/features/oauth/tokens/token-authenticator.ts';
import { type DpopClient, makeDpopClient, type ProofWishes } from '../../../support/dpop-client.ts';
import { type Issuer, startIssuer, usualAudience } from '../../../support/issuer.ts';

const url = usualAudience;
const keys = [randomBytes(32)] as const;
let issuer: Issuer;
let ada: DpopClient;
let eve: DpopClient;
/** How far the clock of the gateway is ahead. */
let aheadMs: number;
let authenticate: Authenticate;

const now = () => Date.now() + aheadMs;

const make = (options: Partial<PossessionOptions> = {}): Authenticate => {
  const check = createPossessionCheck({
    ...{ dpop: 'accept', certificates: undefined, publicUrl: new URL(url).origin, shared: undefined, now },
    nonceKeys: async () => keys,
    ...options,
  });
  const issuerKeys = new IssuerKeys({
    fetchKeys: () => fetchJson(new URL(`${issuer.url}/keys`)),
    ...{ staleMs: 0, now: Date.now, onFailed: () => undefined, onRecovered: () => undefined },
  });
  const tokens = createTokenAuthenticators(
    {
      ...{ algorithms: ['ES256'], clockSkewMs: 0, scopeClaims: usualScopeClaims, hierarchy: new Map() },
      ...{ now: Date.now, issuers: new Map([[issuer.url, issuerKeys]]) },
    },
    check,
  );
  const requiresProof = options.dpop === 'require';
  return createAuthenticate({ authenticators: [tokens(new Set([usualAudience]))], requiresProof });
};

beforeAll(async () => {
  [issuer, ada, eve] = await Promise.all([startIssuer(), makeDpopClient(), makeDpopClient()]);
});
afterAll(() => issuer.close());
beforeEach(() => {
  aheadMs = 0;
  authenticate = make();
});

interface Sent {
  readonly proof?: string | undefined;
  readonly scheme?: string;
  readonly by?: Authenticate;
  readonly method?: string;
  readonly path?: string;
}

interface Outcome {
  readonly outcome: Identity & Challenge;
  /** The nonce that the response carries. */
  readonly next: string | undefined;
}

const send = async (
  token: string,
  { proof, scheme = 'DPoP', by = authenticate, method = 'POST', path = '/mcp' }: Sent = {},
): Promise<Outcome> => {
  const headers = { authorization: `${scheme} ${token}`, ...(proof !== undefined && { dpop: proof }) };
  const incoming = { method, url: path, headers, socket: {} } as unknown as IncomingMessage;
  const outcome = (await by(incoming)) as Identity & Challenge;
  return { outcome, next: nextNonceOf(incoming) };
};

const tokenOf = ({ thumbprint }: DpopClient, claims: object = {}): Promise<string> =>
  issuer.token({ claims: { cnf: { jkt: thumbprint }, ...claims } });

/** Asks for a nonce as clients do: with a proof that has none. */
const nonceFor = async (token: string, client = ada, by = authenticate): Promise<string> => {
  const { outcome, next } = await send(token, { proof: await client.prove(token, 'POST', url), by });
  expect(outcome).toMatchObject({ reason: 'dpop_nonce_required', data: { error: 'use_dpop_nonce' } });
  return next as string;
};

const accepted = { principal: { subject: 'ada' } };
const refusedFor = (why: string, error = 'invalid_dpop_proof') => ({
  reason: 'credentials_invalid',
  detail: { why },
  data: { error, error_description: expect.stringMatching(/^[\w ]+$/) },
  wwwAuthenticate: expect.stringMatching(
    new RegExp(`^DPoP realm="mcp-gangway", error="${error}", error_description="[\\w ]+", algs="[A-Za-z0-9 ]+"$`),
  ),
});

describe('a token that is bound to a key', () => {
  it('[B19] is accepted with a proof by its client that has the nonce of the gateway', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    expect((await send(token, { proof: await ada.prove(token, 'POST', url, nonce) })).outcome).toMatchObject(accepted);
    const again = await send(token, { proof: await ada.prove(token, 'POST', url, nonce), scheme: 'dpop' });
    expect(again).toMatchObject({ outcome: accepted, next: undefined });
  });

  it.each(['ES384', 'PS256', 'RS256', 'EdDSA'])('[B19] is accepted with a proof of a key for %s', async (alg) => {
    const client = await makeDpopClient(alg);
    const token = await tokenOf(client);
    const nonce = await nonceFor(token, client);
    const proof = await client.prove(token, 'POST', url, nonce);
    expect((await send(token, { proof })).outcome).toMatchObject(accepted);
  });

  it('[B19] stolen, without a proof, is refused', async () => {
    const token = await tokenOf(ada);
    expect((await send(token)).outcome).toMatchObject(refusedFor('proof_missing'));
  });

  it('[B19] stolen, as a bearer token, with a proof or without, is refused', async () => {
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token));
    for (const sent of [{ scheme: 'Bearer' }, { scheme: 'Bearer', proof }])
      expect((await send(token, sent)).outcome).toMatchObject(refusedFor('bearer_of_bound', 'invalid_token'));
  });

  it('[B19] stolen, with a proof of the key of the thief, is refused', async () => {
    const token = await tokenOf(ada);
    const proof = await eve.prove(token, 'POST', url, await nonceFor(token));
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_key'));
  });

  it('[B19] stolen, with a proof that names the key of its client but has the signature of the thief, is refused', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    const proof = await ada.prove(token, 'POST', url, nonce, { signWith: eve.privateKey });
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_signature'));
  });

  it('[B19] with a proof that was used before, for this or another request, is refused', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    const jti = 'the-same';
    const proof = await ada.prove(token, 'POST', url, nonce, { claims: { jti } });
    expect((await send(token, { proof })).outcome).toMatchObject(accepted);
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_replayed'));
    const other = await ada.prove(token, 'GET', url, nonce, { claims: { jti } });
    expect((await send(token, { proof: other, method: 'GET' })).outcome).toMatchObject(refusedFor('proof_replayed'));
  });

  it('[B19] with one proof in many requests at the same time reaches a server once', async () => {
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token));
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => send(token, { proof })));
    expect(outcomes.filter(({ outcome }) => 'principal' in outcome)).toHaveLength(1);
  });

  it('[B19] with the proof of another token of the same client is refused', async () => {
    const [token, other] = [await tokenOf(ada), await tokenOf(ada, { jti: 'other' })];
    const proof = await ada.prove(other, 'POST', url, await nonceFor(token));
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_token'));
  });

  const nowS = Math.floor(Date.now() / 1_000);
  const wrong: readonly [string, string, ProofWishes][] = [
    ['for another method', 'proof_request', { claims: { htm: 'GET' } }],
    ['for another path', 'proof_request', { claims: { htu: `${url}/other` } }],
    ['for another host', 'proof_request', { claims: { htu: 'https://evil.example/mcp' } }],
    ['for another port', 'proof_request', { claims: { htu: 'https://mcp.example.com:444/mcp' } }],
    ['for http instead of https', 'proof_request', { claims: { htu: 'http://mcp.example.com/mcp' } }],
    ['for a URL that is none', 'proof_request', { claims: { htu: '/mcp' } }],
    ['for no URL', 'proof_request', { claims: { htu: undefined } }],
    ['for no method', 'proof_request', { claims: { htm: undefined } }],
    ['for no token', 'proof_token', { claims: { ath: undefined } }],
    ['that is old', 'proof_time', { claims: { iat: nowS - 600 } }],
    ['from the future', 'proof_time', { claims: { iat: nowS + 600 } }],
    ['without a time', 'proof_malformed', { claims: { iat: undefined } }],
    ['with a time that is none', 'proof_malformed', { claims: { iat: 'now' } }],
    ['that has expired', 'proof_time', { claims: { exp: nowS - 600 } }],
    ['without a name', 'proof_malformed', { claims: { jti: undefined } }],
    ['with an empty name', 'proof_malformed', { claims: { jti: '' } }],
    ['with a long name', 'proof_malformed', { claims: { jti: 'x'.repeat(1_000) } }],
    ['of another type', 'proof_malformed', { header: { typ: 'JWT' } }],
    ['without a type', 'proof_malformed', { header: { typ: undefined } }],
    ['without a key', 'proof_malformed', { header: { jwk: undefined } }],
    ['with a key that is none', 'proof_malformed', { header: { jwk: 'key' } }],
    ['with a critical extension', 'proof_malformed', { header: { crit: ['x'], x: 1 } }],
    ['that is huge', 'proof_malformed', { claims: { more: 'x'.repeat(5_000) } }],
  ];
  it.each(wrong)('[B19] with a proof %s is refused', async (_name, why, wishes) => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    const crit = wishes.header?.['crit'] === undefined ? undefined : { x: false };
    const proof = await ada.prove(token, 'POST', url, nonce, wishes).catch((cause: unknown) => {
      if (crit === undefined) throw cause;
      return withHeader(token, nonce, wishes);
    });
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor(why));
  });

  /** Makes a proof with a header that the library does not sign. */
  async function withHeader(token: string, nonce: string, { header }: ProofWishes): Promise<string> {
    const [head = '', ...rest] = (await ada.prove(token, 'POST', url, nonce)).split('.');
    const changed = { ...JSON.parse(Buffer.from(head, 'base64url').toString()), ...header };
    return [Buffer.from(JSON.stringify(changed)).toString('base64url'), ...rest].join('.');
  }

  it('[B19] with a proof that contains the private key is refused', async () => {
    const token = await tokenOf(ada);
    const wishes = { header: { jwk: ada.privateJwk } };
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token), wishes);
    expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_malformed'));
  });

  it('[B19] with a proof that is signed with a secret, or not at all, is refused', async () => {
    const secret = randomBytes(32);
    const oct = { kty: 'oct', k: secret.toString('base64url') };
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    for (const jwk of [oct, ada.publicJwk]) {
      const wishes = { header: { alg: 'HS256', jwk }, signWith: secret };
      const proof = await ada.prove(token, 'POST', url, nonce, wishes);
      expect((await send(token, { proof })).outcome).toMatchObject(refusedFor('proof_malformed'));
    }
    const unsigned = new UnsecuredJWT({ htm: 'POST', htu: url }).encode();
    expect((await send(token, { proof: unsigned })).outcome).toMatchObject(refusedFor('proof_malformed'));
  });

  it('[B19] with two proofs is refused', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    const [one, two] = [await ada.prove(token, 'POST', url, nonce), await ada.prove(token, 'POST', url, nonce)];
    expect((await send(token, { proof: `${one}, ${two}` })).outcome).toMatchObject(refusedFor('proof_malformed'));
  });

  it('[B19] is accepted whatever the spelling of the URL, with a query or as a WebSocket', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    for (const htu of ['HTTPS://MCP.example.com:443/mcp', `${url}?x=1`, `${url}#x`, 'wss://mcp.example.com/mcp']) {
      const proof = await ada.prove(token, 'POST', htu, nonce);
      expect((await send(token, { proof, path: '/mcp?x=2' })).outcome).toMatchObject(accepted);
    }
  });

  it.each([
    ['nothing', {}],
    ['a key itself', { jwk: { kty: 'EC' } }],
    ['a thumbprint that is none', { jkt: 'abc' }],
    ['a key and something unknown', { jkt: 'x'.repeat(43), kid: '1' }],
    ['a text', 'abc'],
    ['a certificate, which the gateway does not request', { 'x5t#S256': 'x'.repeat(43) }],
  ])('[B19] and is bound to %s, is refused', async (_name, cnf) => {
    const token = await issuer.token({ claims: { cnf } });
    for (const scheme of ['Bearer', 'DPoP']) {
      const { outcome } = await send(token, { scheme, proof: await ada.prove(token, 'POST', url) });
      expect(outcome).toMatchObject({ reason: 'credentials_invalid', detail: { why: 'cnf' } });
    }
  });
});

describe('a nonce', () => {
  it('[B19] of yesterday, or that somebody invented or changed, is refused, and the client gets a new one', async () => {
    const token = await tokenOf(ada);
    const nonce = await nonceFor(token);
    const changed = `${nonce[0] === 'A' ? 'B' : 'A'}${nonce.slice(1)}`;
    aheadMs = 24 * 3_600_000;
    const iat = Math.floor(now() / 1_000);
    for (const wrong of [nonce, changed, '', 'abc', 'x'.repeat(40), randomBytes(30).toString('base64url')]) {
      const proof = await ada.prove(token, 'POST', url, wrong, { claims: { iat } });
      const { outcome, next } = await send(token, { proof });
      expect(outcome).toMatchObject({ reason: 'dpop_nonce_required', detail: { why: 'proof_nonce' } });
      const better = await ada.prove(token, 'POST', url, next, { claims: { iat } });
      expect((await send(token, { proof: better })).outcome).toMatchObject(accepted);
    }
  });

  it('is replaced with a response before it expires, so that a client in use never has to ask again', async () => {
    const token = await tokenOf(ada);
    let nonce = await nonceFor(token);
    for (let seconds = 0; seconds < 280; seconds += 40) {
      aheadMs = seconds * 1_000;
      const { outcome, next } = await send(token, { proof: await ada.prove(token, 'POST', url, nonce) });
      expect(outcome).toMatchObject(accepted);
      nonce = next ?? nonce;
    }
  });

  it('[B19] of a process that has ended is not accepted by the next one, which has forgotten the used proofs', async () => {
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token));
    expect((await send(token, { proof, by: make() })).outcome).toMatchObject({ reason: 'dpop_nonce_required' });
  });

  it('cannot be made without the keys that instances share, which is not the fault of the client', async () => {
    const token = await tokenOf(ada);
    const by = make({ nonceKeys: async () => undefined });
    const { outcome } = await send(token, { proof: await ada.prove(token, 'POST', url), by });
    expect(outcome).toMatchObject({ reason: 'store_unavailable' });
  });
});

describe('several instances', () => {
  /** A store that can be away. */
  const makeStore = () => {
    const used = new Set<string>();
    return {
      healthyMs: 60_000,
      used,
      healthyForMs(): number {
        return this.healthyMs;
      },
      async use(name: string): Promise<boolean | undefined> {
        if (this.healthyMs === 0) return undefined;
        return !used.has(name) && used.add(name) !== undefined;
      },
    };
  };

  it('[B19] accept the nonces of each other, and a proof only once', async () => {
    const shared = makeStore();
    const [a, b] = [make({ shared }), make({ shared })];
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token, ada, a));
    expect((await send(token, { proof, by: b })).outcome).toMatchObject(accepted);
    for (const by of [a, b])
      expect((await send(token, { proof, by })).outcome).toMatchObject(refusedFor('proof_replayed'));
  });

  it('[B19] accept only their own nonces while the store is away, so that no proof counts twice', async () => {
    const shared = makeStore();
    const [a, b] = [make({ shared }), make({ shared })];
    const token = await tokenOf(ada);
    const before = await ada.prove(token, 'POST', url, await nonceFor(token, ada, a));
    expect((await send(token, { proof: before, by: a })).outcome).toMatchObject(accepted);
    shared.healthyMs = 0;
    for (const by of [a, b])
      expect((await send(token, { proof: before, by })).outcome).toMatchObject({ reason: 'dpop_nonce_required' });
    const during = await ada.prove(token, 'POST', url, await nonceFor(token, ada, a));
    expect((await send(token, { proof: during, by: a })).outcome).toMatchObject(accepted);
    expect((await send(token, { proof: during, by: a })).outcome).toMatchObject(refusedFor('proof_replayed'));
    expect((await send(token, { proof: during, by: b })).outcome).toMatchObject({ reason: 'dpop_nonce_required' });
  });

  it('[B19] accept no proof from before an outage, whose use the store may have lost', async () => {
    const shared = makeStore();
    const [a, b] = [make({ shared }), make({ shared })];
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url, await nonceFor(token, ada, a));
    expect((await send(token, { proof, by: a })).outcome).toMatchObject(accepted);
    shared.used.clear();
    aheadMs = 20_000;
    shared.healthyMs = 10_000;
    for (const by of [a, b])
      expect((await send(token, { proof, by })).outcome).toMatchObject({ reason: 'dpop_nonce_required' });
  });
});

describe('the option', () => {
  it('[B19] require refuses tokens that anybody could use, and challenges for DPoP', async () => {
    const by = make({ dpop: 'require' });
    const token = await issuer.token();
    for (const scheme of ['Bearer', 'DPoP'])
      expect((await send(token, { scheme, by })).outcome).toMatchObject(refusedFor('not_bound', 'invalid_token'));
    const outcome = await by({ url: '/mcp', headers: {}, socket: {} } as unknown as IncomingMessage);
    const algorithms = proofAlgorithms.join(' ');
    expect(outcome).toMatchObject({ wwwAuthenticate: `DPoP realm="mcp-gangway", algs="${algorithms}"` });
  });

  it('[B19] accept takes both kinds of tokens, each with its scheme', async () => {
    const token = await issuer.token();
    expect((await send(token, { scheme: 'Bearer' })).outcome).toMatchObject(accepted);
    expect((await send(token)).outcome).toMatchObject(refusedFor('not_bound', 'invalid_token'));
  });

  it('[B19] off refuses tokens that are bound to a key, with a proof or without', async () => {
    const by = make({ dpop: 'off' });
    const token = await tokenOf(ada);
    const proof = await ada.prove(token, 'POST', url);
    expect((await send(token, { by, scheme: 'Bearer' })).outcome).toMatchObject({ detail: { why: 'cnf' } });
    expect((await send(token, { by, proof })).outcome).toMatchObject({ detail: { why: 'no_bearer' } });
  });
});

describe('the memory of used proofs', () => {
  it('[P8] has a limit; the nonces of dropped proofs are not accepted any more', () => {
    const used = new UsedProofs(3);
    for (const n of [1, 2, 3, 4, 5]) expect(used.use(`proof ${n}`, n, 10)).toBe(true);
    expect([1, 2, 3, 4, 5].map((n) => used.remembers(n))).toEqual([false, false, true, true, true]);
    expect([3, 4, 5].map((n) => used.use(`proof ${n}`, n, 10))).toEqual([false, false, false]);
  });

  it('[P8] drops proofs whose nonces have expired', () => {
    const used = new UsedProofs(3);
    for (const n of [1, 2, 3]) used.use(`proof ${n}`, n, 10);
    expect(used.use('later', 500_000, 500_001)).toBe(true);
    expect(used.remembers(4)).toBe(true);
    expect(used.use('proof 1', 1, 500_001)).toBe(true);
  });
});
