import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';

const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ format: 'pem', type: 'pkcs8' })
  .toString();
const files: Readonly<Record<string, string>> = { '/secret': 'the "secret"\n', '/key.pem': pem };
const read = (argv: readonly string[], file?: object) =>
  readConfiguration({
    argv: file === undefined ? argv : [...argv, '--config', 'gangway.json'],
    env: {},
    readFile: (path) => files[path] ?? JSON.stringify(file),
  });
const faultsOf = (...given: Parameters<typeof read>): readonly string[] => {
  const found = read(...given);
  return found.ok ? [] : found.faults.map(({ path, message }) => `${path} ${message}`);
};

const identity = {
  grant: 'client_credentials',
  issuer: 'https://login.example',
  clientId: 'me',
  clientSecret: 's3cret',
};
const exchange = { ...identity, grant: 'token_exchange' };
const url = 'https://crm.example/mcp';
const faultsOfServer = (server: object, more: object = {}): readonly string[] =>
  faultsOf([], { mcpServers: { crm: { url, ...server } }, ...more });
const users = {
  auth: { oauth: { issuers: ['https://login.example'] } },
  listen: { publicUrl: 'https://mcp.example.com' },
};

describe('the identity of the gateway at a server', () => {
  it.each([
    ['an issuer and a secret', identity],
    ['a token endpoint', { ...identity, issuer: undefined, tokenUrl: 'https://login.example/token' }],
    ['plain HTTP on this machine', { ...identity, issuer: 'http://127.0.0.1:9000' }],
    ['a key', { ...identity, clientSecret: undefined, privateKey: pem, keyId: 'k' }],
  ])('%s is accepted', (_, given) => {
    expect(faultsOfServer({ identity: given })).toEqual([]);
  });

  it.each<[string, object, RegExp]>([
    ['no grant', { ...identity, grant: undefined }, /needs grant: client_credentials or token_exchange/],
    ['no client', { ...identity, clientId: undefined }, /needs clientId/],
    ['no authorization server', { ...identity, issuer: undefined }, /needs issuer.*or tokenUrl/],
    ['neither secret nor key', { ...identity, clientSecret: undefined }, /either clientSecret or privateKey/],
    ['secret and key', { ...identity, privateKey: pem }, /either clientSecret or privateKey/],
    ['a key that is none', { ...identity, clientSecret: undefined, privateKey: 'x' }, /not an RSA, EC or Ed25519 key/],
    ['plain HTTP', { ...identity, issuer: 'http://login.example' }, /must use https/],
    ['a password in the URL', { ...identity, issuer: 'https://a:b@login.example' }, /no user name or password/],
    ['an unknown member', { ...identity, secret: 'x' }, /secret is not a known key; the keys are grant/],
  ])('%s: a fault that names the remedy and no secret', (_, given, message) => {
    const faults = faultsOfServer({ identity: given });
    expect(faults.join(' ')).toMatch(message);
    expect(faults.join(' ')).not.toMatch(/s3cret|PRIVATE KEY/);
  });

  it.each<[string, object, RegExp]>([
    ['a header Authorization', { headers: { authorization: 'Bearer x' } }, /identity and also Authorization/],
    ['forwarded Authorization', { forwardHeaders: ['Authorization'] }, /identity and also Authorization/],
  ])('together with %s: refused', (_, more, message) => {
    expect(faultsOfServer({ identity, ...more }).join(' ')).toMatch(message);
  });

  it('of a STDIO server is refused', () => {
    expect(faultsOf([], { mcpServers: { git: { command: 'x', identity } } }).join(' ')).toMatch(
      /only for servers at a URL/,
    );
  });
});

describe('tokens of users', () => {
  it('need access tokens of users, and an own session for each of them', () => {
    expect(faultsOfServer({ identity: exchange }, users)).toEqual([]);
    expect(faultsOfServer({ identity: exchange }).join(' ')).toMatch(/needs auth\.oauth\.issuers/);
    expect(faultsOfServer({ identity: exchange, share: 'all' }, users).join(' ')).toMatch(
      /users share sessions; use share user/,
    );
    expect(faultsOfServer({ identity: exchange, warm: 1 }, users).join(' ')).toMatch(/set warm to 0/);
    expect(faultsOfServer({ identity: exchange }, { ...users, views: { all: { servers: ['crm'] } } })).toEqual([]);
    expect(faultsOfServer({ auth: 'upstream' }, { views: { all: { servers: ['crm'] } } }).join(' ')).toMatch(
      /at which each client logs in; leave that server out/,
    );
  });
});

describe('on the command line', () => {
  const given = (members: object): string[] => [
    '--defaults.identity',
    JSON.stringify({ ...identity, ...members }),
    url,
  ];

  it('[P12] a secret is refused, and not repeated', () => {
    const faults = faultsOf(given({}));
    expect(faults).toEqual([
      '--defaults.identity has a secret, which every user of this machine can read on the command line; write ${file:/path} instead',
    ]);
  });

  it('[P12] a secret for introspection is refused too', () => {
    const introspection = JSON.stringify({ clientId: 'gateway', clientSecret: 's3cret' });
    const args = ['--auth.oauth.introspection', introspection, '--auth.oauth.issuers', 'https://login.example.com'];
    const faults = faultsOf([...args, '--public-url', 'https://mcp.example.com', url]);
    expect(faults).toEqual([
      '--auth.oauth.introspection has a secret, which every user of this machine can read on the command line; write ${file:/path} instead',
    ]);
  });

  it('a reference is replaced by the text of the file, quotation marks and line breaks included', () => {
    const found = read(given({ clientSecret: '${file:/secret}' }));
    expect(found.ok && 'config' in found && found.config.servers[0]?.identity?.clientSecret).toBe('the "secret"');
    const key = read(given({ clientSecret: undefined, privateKey: '${file:/key.pem}' }));
    expect(key.ok && 'config' in key && key.config.servers[0]?.identity?.privateKey).toBe(pem.trimEnd());
  });
});
