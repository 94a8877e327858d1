import { describe, expect, it } from 'vitest';
import { type Configuration, readConfiguration } from '../../../src/config/config.ts';

const issuer = ['--auth-issuer', 'https://login.example.com'];
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
  it('are asked for with an issuer and the public URL, by any signature with a public key', () => {
    const config = configOf([...issuer, '--public-url', 'https://mcp.example.com/', '--', 'x']);
    expect(config).toMatchObject({ authIssuer: ['https://login.example.com'], publicUrl: 'https://mcp.example.com' });
    expect(config.authAlgorithms).toContain('RS256');
    expect(config.authAlgorithms.filter((name) => /^HS|none/.test(name))).toEqual([]);
  });

  it('may come from several issuers, and from one on this machine without TLS', () => {
    const argv = [...issuer, '--auth-issuer', 'http://127.0.0.1:9000', ...publicUrl, '--', 'x'];
    expect(configOf(argv).authIssuer).toEqual(['https://login.example.com', 'http://127.0.0.1:9000']);
  });

  it.each([
    ['no public URL', [...issuer], '--auth-issuer', 'needs --public-url'],
    ['an issuer without TLS', ['--auth-issuer', 'http://login.example.com', ...publicUrl], '--auth-issuer[0]', 'https'],
    ['an issuer that is no URL', ['--auth-issuer', 'login', ...publicUrl], '--auth-issuer[0]', 'https:// URL'],
    ['a query', ['--auth-issuer', 'https://a.example/?b', ...publicUrl], '--auth-issuer[0]', 'query'],
    ['a password', [...issuer, '--public-url', 'https://a:b@c.example'], '--public-url', 'password'],
    ['a fragment', [...issuer, '--public-url', 'https://c.example/#a'], '--public-url', 'fragment'],
    ['a shared secret', [...issuer, ...publicUrl, '--auth-algorithms', 'HS256'], '--auth-algorithms[0]', 'RS256'],
    ['no signature', [...issuer, ...publicUrl, '--auth-algorithms', 'none'], '--auth-algorithms[0]', 'RS256'],
    ['an audience alone', ['--auth-audience', 'api'], '--auth-audience', '--auth-issuer'],
    [
      'the keys of one of two',
      [...issuer, ...issuer, ...publicUrl, '--auth-jwks-url', 'https://a.example'],
      '--auth-jwks-url',
      'single',
    ],
    [
      'scopes that nobody is asked for',
      ['--required-scopes', 'read'],
      '--required-scopes',
      '--auth-issuer, --api-keys',
    ],
    [
      'a scope that is none',
      [...issuer, ...publicUrl, '--required-scopes', 'a"b'],
      '--required-scopes[0]',
      'visible ASCII',
    ],
    ['a tool without scopes', [...issuer, ...publicUrl, '--tool-scopes', 'x='], '--tool-scopes.x', 'at least one'],
  ])('are refused with %s', (_name, argv, path, message) => {
    const [fault] = faultsOf([...argv, '--', 'x']);
    expect(fault).toMatchObject({ path, message: expect.stringContaining(message) });
  });

  it('have scopes in blanks or in lists, for all servers or for one', () => {
    const file = {
      authIssuer: ['https://login.example.com'],
      publicUrl: 'https://mcp.example.com',
      impliedScopes: { admin: ['read', 'write'] },
      toolScopes: { 'delete_*': 'files:write admin' },
      mcpServers: {
        a: { command: 'x', requiredScopes: ['base'] },
        b: { command: 'y', toolScopes: { '*': ['any'] } },
      },
    };
    const { servers, impliedScopes } = configOf(['--config', 'config.json'], file);
    expect(servers).toMatchObject([
      { requiredScopes: ['base'], toolScopes: { 'delete_*': ['files:write', 'admin'] } },
      { requiredScopes: [], toolScopes: { '*': ['any'] } },
    ]);
    expect(impliedScopes).toEqual({ admin: ['read', 'write'] });
    const argv = [...issuer, ...publicUrl, '--tool-scopes', 'delete_*=files:write admin', '--', 'x'];
    expect(configOf(argv).servers[0]?.toolScopes).toEqual({ 'delete_*': ['files:write', 'admin'] });
  });

  it('of one server in the file are a fault as well where nobody is asked who they are', () => {
    const file = { mcpServers: { a: { command: 'x', toolScopes: { '*': 'any' } } } };
    expect(faultsOf(['--config', 'config.json'], file)).toHaveLength(1);
  });
});
