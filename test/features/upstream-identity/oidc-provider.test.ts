import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import Provider from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTokenRequests } from '../../../src/features/upstream-identity/token-client.ts';

const secret = "a secret with: odd 'characters' & 100 %";
const kinds = ['rsa', 'ec', 'ed25519'] as const;
const pairs = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: generateKeyPairSync('ed25519'),
};
const algorithms = { rsa: 'RS256', ec: 'ES256', ed25519: 'Ed25519' };

let issuer: string;
let close: () => Promise<void>;
beforeAll(async () => {
  const http = createServer((incoming, outgoing) => void provider.callback()(incoming, outgoing));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const common = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
  const withKey = (kind: (typeof kinds)[number]): object => ({
    ...common,
    client_id: kind,
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: algorithms[kind],
    jwks: { keys: [{ ...(pairs[kind].publicKey.export({ format: 'jwk' }) as JWK), kid: `key-of-${kind}` }] },
  });
  const provider = new Provider(issuer, {
    clients: [
      { ...common, client_id: 'header', client_secret: secret, token_endpoint_auth_method: 'client_secret_basic' },
      { ...common, client_id: 'body', client_secret: secret, token_endpoint_auth_method: 'client_secret_post' },
      ...kinds.map(withKey),
    ],
    enabledJWA: { clientAuthSigningAlgValues: Object.values(algorithms) },
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    scopes: ['crm.read'],
    ttl: { ClientCredentials: 123 },
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
  } as ConstructorParameters<typeof Provider>[1]);
  close = async () => {
    http.closeAllConnections();
    http.close();
    await once(http, 'close');
  };
});
afterAll(() => close());

describe('tokens of a real authorization server, found by its metadata', () => {
  const grant = 'client_credentials';
  it.each(['header', 'body'] as const)('with a secret in the %s', async (secretIn) => {
    const request = createTokenRequests({ grant, issuer, clientId: secretIn, clientSecret: secret, secretIn });
    const { token, lifetimeMs } = await request(undefined);
    expect(token.length).toBeGreaterThan(20);
    expect(lifetimeMs).toBe(123_000);
  });

  it.each(kinds)('with a signature by a key of the kind %s, as PEM and as JWK', async (kind) => {
    const { privateKey } = pairs[kind];
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    const jwk = JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: `key-of-${kind}` });
    for (const key of [{ privateKey: pem, keyId: `key-of-${kind}` }, { privateKey: jwk }]) {
      const request = createTokenRequests({ grant, issuer, clientId: kind, ...key });
      expect((await request(undefined)).lifetimeMs).toBe(123_000);
    }
  });

  it('with the key of another client: refused, with advice', async () => {
    const privateKey = pairs.ec.privateKey.export({ format: 'pem', type: 'sec1' }).toString();
    const request = createTokenRequests({ grant, issuer, clientId: 'rsa', privateKey });
    await expect(request(undefined)).rejects.toMatchObject({
      reason: 'upstream_token_refused',
      message: expect.stringMatching(/\(invalid_client\)\. Check clientId, and the secret or the key\.$/),
    });
  });
});
