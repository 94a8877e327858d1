import { describe, expect, it } from 'vitest';
import { type Configuration, readConfiguration } from '../../../src/config/config.ts';

const issuer = ['--auth.oauth.issuers', 'https://login.example.com'];
const publicUrl = ['--public-url', 'https://mcp.example.com'];

const read = (argv: readonly string[], file: object = {}): Configuration =>
  readConfiguration({ argv, env: {}, readFile: () => JSON.stringify(file) });

const configOf = (...given: Parameters<typeof read>) => {
  const outcome = read(...given);
  if (!outcome.ok || !('config' in outcome)) throw new Error(JSON.stringify(outcome));
  return outcome.config;
};

const faultsOf = (...given: Parameters<typeof read>) => {
  const outcome = read(...given);
  return outcome.ok ? [] : outcome.faults;
};

describe('access tokens', () => {
  it('are asked for with an issuer and the public URL', () => {
    const config = configOf([...issuer, '--public-url', 'https://mcp.example.com/', '--', 'x']);
    expect(config).toMatchObject({
      auth: { oauth: { issuers: ['https://login.example.com'] } },
      listen: { publicUrl: 'https://mcp.example.com' },
    });
  });

  it('may come from several issuers, and from one on this machine without TLS', () => {
    const argv = [...issuer, '--auth.oauth.issuers', 'http://127.0.0.1:9000', ...publicUrl, '--', 'x'];
    expect(configOf(argv).auth.oauth.issuers).toEqual(['https://login.example.com', 'http://127.0.0.1:9000']);
  });

  it.each([
    ['no public URL', [...issuer], '--auth.oauth.issuers', 'needs --public-url'],
    [
      'an issuer without TLS',
      ['--auth.oauth.issuers', 'http://login.example.com', ...publicUrl],
      '--auth.oauth.issuers[0]',
      'https',
    ],
    [
      'an issuer that is no URL',
      ['--auth.oauth.issuers', 'login', ...publicUrl],
      '--auth.oauth.issuers[0]',
      'https:// URL',
    ],
    ['a query', ['--auth.oauth.issuers', 'https://a.example/?b', ...publicUrl], '--auth.oauth.issuers[0]', 'query'],
    ['a password', [...issuer, '--public-url', 'https://a:b@c.example'], '--public-url', 'password'],
    ['a fragment', [...issuer, '--public-url', 'https://c.example/#a'], '--public-url', 'fragment'],
    ['proofs alone', ['--auth.oauth.dpop', 'require'], '--auth.oauth.dpop', '--auth.oauth.issuers'],
    [
      'certificates of clients without TLS',
      [...issuer, ...publicUrl, '--auth.oauth.clientCertificates', 'any'],
      '--auth.oauth.clientCertificates',
      'needs --tls-cert',
    ],
    ['an audience alone', ['--auth.oauth.audiences', 'api'], '--auth.oauth.audiences', '--auth.oauth.issuers'],
    [
      'scopes that nobody is asked for',
      ['--defaults.scopes.required', 'read'],
      '--defaults.scopes.required',
      '--auth.oauth.issuers, --api-keys-file',
    ],
    [
      'a scope that is none',
      [...issuer, ...publicUrl, '--defaults.scopes.required', 'a"b'],
      '--defaults.scopes.required[0]',
      'visible ASCII',
    ],
    [
      'a tool without scopes',
      [...issuer, ...publicUrl, '--defaults.scopes.tools', 'x='],
      '--defaults.scopes.tools.x',
      'at least one',
    ],
  ])('are refused with %s', (_name, argv, path, message) => {
    const [fault] = faultsOf([...argv, '--', 'x']);
    expect(fault).toMatchObject({ path, message: expect.stringContaining(message) });
  });

  it('have scopes in blanks or in lists, for all servers or for one', () => {
    const file = {
      listen: { publicUrl: 'https://mcp.example.com' },
      auth: { oauth: { issuers: ['https://login.example.com'] }, impliedScopes: { admin: ['read', 'write'] } },
      defaults: { scopes: { tools: { 'delete_*': 'files:write admin' } } },
      mcpServers: {
        a: { command: 'x', scopes: { required: ['base'] } },
        b: { command: 'y', scopes: { tools: { '*': ['any'] } } },
      },
    };
    const { servers, auth } = configOf(['--config', 'config.json'], file);
    expect(servers).toMatchObject([
      { scopes: { required: ['base'], tools: { 'delete_*': ['files:write', 'admin'] } } },
      { scopes: { required: [], tools: { '*': ['any'] } } },
    ]);
    expect(auth.impliedScopes).toEqual({ admin: ['read', 'write'] });
    const argv = [...issuer, ...publicUrl, '--defaults.scopes.tools', 'delete_*=files:write admin', '--', 'x'];
    expect(configOf(argv).servers[0]?.scopes.tools).toEqual({ 'delete_*': ['files:write', 'admin'] });
  });

  it('of two servers of a view for the same visible name count together', () => {
    const file = {
      listen: { publicUrl: 'https://mcp.example.com' },
      auth: { oauth: { issuers: ['https://login.example.com'] } },
      mcpServers: {
        git: { command: 'x', scopes: { tools: { x: ['git:write'] } } },
        plain: { command: 'y', scopes: { tools: { git__x: ['read'] } } },
      },
      views: { all: { servers: ['git', 'plain'], unprefixed: 'plain' } },
    };
    const view = configOf(['--config', 'config.json'], file).servers.find(({ name }) => name === 'all');
    expect(view?.scopes.tools).toEqual({ git__x: ['git:write', 'read'] });
  });

  it('of one server in the file are a fault as well where nobody is asked who they are', () => {
    const file = { mcpServers: { a: { command: 'x', scopes: { tools: { '*': 'any' } } } } };
    expect(faultsOf(['--config', 'config.json'], file)).toHaveLength(1);
  });
});

describe('introspection', () => {
  const argv = (value: object) => [
    ...issuer,
    ...publicUrl,
    '--auth.oauth.introspection',
    JSON.stringify(value),
    '--',
    'x',
  ];

  it('has a cache of 30 s and is for opaque tokens, unless the file says otherwise', () => {
    expect(configOf(argv({})).auth.oauth.introspection).toEqual({
      cache: 30_000,
      protocol: 'rfc7662',
      tokens: 'opaque',
    });
    const all = { url: 'https://login.example.com/introspect', tokens: 'all', cache: '5s' };
    expect(configOf(argv(all)).auth.oauth.introspection).toMatchObject({ ...all, cache: 5_000 });
  });

  it.each([
    ['another member', { secret: 'x' }, 'is not a known key; the keys are url'],
    ['a secret on the command line', { clientId: 'gateway', clientSecret: 'x' }, 'has a secret, which every user'],
    ['an endpoint without TLS', { url: 'http://login.example.com' }, 'https'],
    ['the protocol of Google without a URL', { protocol: 'tokeninfo' }, 'needs url'],
    ['a cache without a bound', { cache: '1d' }, 'must be from 1s to 5m'],
    ['an issuer that is not configured', { issuer: 'https://other.example' }, 'must have an issuer that is one of'],
  ])('is refused with %s', (_name, value, message) => {
    expect(faultsOf(argv(value)).map(({ message: text }) => text)).toEqual([expect.stringContaining(message)]);
  });

  it('is refused with a secret without a client', () => {
    const faults = faultsOf(argv({ clientSecret: 'x' })).map(({ message }) => message);
    expect(faults).toContainEqual(expect.stringContaining('has clientSecret without clientId'));
  });

  it('needs to know the issuer where there are several', () => {
    const several = ['--auth.oauth.issuers', 'https://b.example', ...argv({})];
    expect(faultsOf(several)).toEqual([expect.objectContaining({ path: '--auth.oauth.introspection' })]);
    const named = ['--auth.oauth.issuers', 'https://b.example', ...argv({ issuer: 'https://b.example' })];
    expect(faultsOf(named)).toEqual([]);
  });
});
