import { describe, expect, it } from 'vitest';
import { makeKey } from '../../../src/app/commands/key-command.ts';
import { readKeysFile } from '../../../src/config/access/api-key-sources.ts';
import { hasAuthentication } from '../../../src/config/access/authentication-config.ts';
import { readConfiguration } from '../../../src/config/config.ts';
import { renderIssueMessage } from '../../../src/config/issues.ts';
import { namesAt } from '../../../src/config/options/option-names.ts';
import { isolationOf } from '../../../src/config/servers/process-sharing.ts';
import { digestOfKey } from '../../../src/core/auth/api-keys.ts';

const secret = 'correct-horse-battery-staple-0123456789';
const sha256 = digestOfKey(secret);

interface Given {
  readonly argv?: readonly string[];
  readonly env?: Record<string, string>;
  readonly files?: Record<string, unknown>;
}

const read = ({ argv = [], env = {}, files = {} }: Given) =>
  readConfiguration({
    argv: argv.includes('--') || argv.some((word) => word.includes('://')) ? argv : [...argv, '--', 'x'],
    env,
    readFile(path) {
      const file = files[path];
      if (file === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
      return typeof file === 'string' ? file : JSON.stringify(file);
    },
  });

const faultsOf = (given: Given) => {
  const result = read(given);
  return result.ok ? [] : result.faults.map(({ path, message }) => `${path} ${message}`);
};

const configOf = (given: Given) => {
  const result = read(given);
  if (!result.ok || !('config' in result)) throw new Error(JSON.stringify(result));
  return result.config;
};

const keysFile = (keys: unknown) => ({ argv: ['--api-keys-file', 'keys.json'], files: { 'keys.json': keys } });

describe('authentication', () => {
  it.each<[string, Given, boolean]>([
    ['nothing', {}, false],
    ['a file of keys', keysFile([{ name: 'alice', sha256 }]), true],
    ['a file of no keys: nobody is let in', keysFile([]), true],
    ['keys in the environment', { env: { GANGWAY_API_KEYS: `alice:sha256:${sha256}` } }, true],
    ['a proxy', { argv: ['--auth.proxy.userHeader', 'X-User', '--auth.proxy.addresses', '10.0.0.0/8'] }, true],
  ])('is configured by %s: %#', (_what, given, isConfigured) => {
    expect(hasAuthentication(configOf(given))).toBe(isConfigured);
  });

  it('makes users be kept apart on legacy servers, unless something else is said', () => {
    expect([isolationOf('auto', 'users'), isolationOf('auto', 'unknown'), isolationOf('all', 'users')]).toEqual([
      'principal',
      'request',
      'shared',
    ]);
  });

  it('[S04] and forwarding of Authorization exclude each other, for each server', () => {
    const argv = ['--defaults.forwardHeaders', 'Authorization', 'https://x.example/mcp'];
    expect(faultsOf({ argv })).toEqual([]);
    for (const given of [{ env: { GANGWAY_API_KEYS: `alice:sha256:${sha256}` } }, { env: {}, ...keysFile([]) }]) {
      const files = 'files' in given ? given.files : {};
      const all = 'argv' in given ? [...given.argv, ...argv] : argv;
      expect(faultsOf({ argv: all, env: given.env, files })).toEqual([
        expect.stringMatching(
          /^--defaults.forwardHeaders has authorization in --defaults.forwardHeaders.*remove authorization, because these credentials must not reach a server$/,
        ),
      ]);
    }
    const proxy = ['--auth.proxy.userHeader', 'x-user', '--auth.proxy.addresses', '::1', ...argv];
    expect(faultsOf({ argv: proxy })).toHaveLength(1);
  });

  it.each<[string, readonly string[], RegExp]>([
    ['sharing by users without users', ['--host', '0.0.0.0', '--share', 'user'], /needs authentication/],
    ['an identity header from anywhere', ['--auth.proxy.userHeader', 'x-user'], /needs --auth.proxy.addresses/],
    ['a trusted proxy without a header', ['--auth.proxy.addresses', '::1'], /needs --auth.proxy.userHeader/],
    ['a scopes header alone', ['--auth.proxy.scopesHeader', 'x-scopes'], /needs --auth.proxy.userHeader/],
    [
      'one header for both',
      ['--auth.proxy.userHeader', 'x-user', '--auth.proxy.scopesHeader', 'X-User', '--auth.proxy.addresses', '::1'],
      /must differ from/,
    ],
    [
      'a header with a meaning',
      ['--auth.proxy.userHeader', 'Authorization', '--auth.proxy.addresses', '::1'],
      /another meaning/,
    ],
    [
      'a proxy by name',
      ['--auth.proxy.userHeader', 'x-user', '--auth.proxy.addresses', 'proxy'],
      /IP address or a network/,
    ],
  ])('refuses %s', (_what, argv, message) => {
    expect(faultsOf({ argv })).toEqual(expect.arrayContaining([expect.stringMatching(message)]));
  });
});

describe('a file of API keys', () => {
  const readKeys = (text: string) => {
    const faults: string[] = [];
    const keys = readKeysFile(text, 'keys.json', (path, message) =>
      faults.push(`${path} ${renderIssueMessage(message, namesAt('--', false))}`),
    );
    return { keys, faults };
  };

  it('holds names, hashes, times and scopes', () => {
    const text = JSON.stringify([
      { name: 'alice', sha256: sha256.toUpperCase() },
      {
        name: 'ci@example.com',
        sha256: digestOfKey('2'),
        expires: '2027-01-31T00:00:00+01:00',
        scopes: ['read', 'a:b'],
      },
    ]);
    expect(readKeys(`\uFEFF${text}`)).toEqual({
      keys: [
        { name: 'alice', sha256, expiresAtMs: undefined, scopes: undefined },
        {
          name: 'ci@example.com',
          sha256: digestOfKey('2'),
          expiresAtMs: Date.parse('2027-01-30T23:00:00Z'),
          scopes: ['read', 'a:b'],
        },
      ],
      faults: [],
    });
  });

  it.each<[string, unknown, string]>([
    ['no list', { alice: sha256 }, 'keys.json must be a list such as [{ "name"'],
    ['a key itself', [{ name: 'alice', key: secret }], 'keys.json: [0]'],
    ['no hash', [{ name: 'alice', sha256: secret }], 'keys.json: [0].sha256 must be 64 hexadecimal digits'],
    ['[A05] no name', [{ name: '', sha256 }], 'keys.json: [0].name must be 1 to 128'],
    [
      'a time that is none',
      [{ name: 'a', sha256, expires: 'tomorrow' }],
      'keys.json: [0].expires must be a time such as',
    ],
    ['a day', [{ name: 'a', sha256, expires: '2027-01-31' }], 'keys.json: [0].expires must be a time such as'],
    ['scopes in one text', [{ name: 'a', sha256, scopes: 'a b' }], 'keys.json: [0].scopes must be a list'],
    ['a scope with a blank', [{ name: 'a', sha256, scopes: ['a b'] }], 'keys.json: [0].scopes[0] must be a scope'],
    [
      'one key twice',
      [
        { name: 'a', sha256 },
        { name: 'b', sha256 },
      ],
      'keys.json has the key of b more than once',
    ],
  ])('with %s is refused with its place, and never with a value', (_what, value, expected) => {
    const { keys, faults } = readKeys(JSON.stringify(value));
    expect(keys).toBeUndefined();
    expect(faults.join('\n')).toContain(expected);
    expect(faults.join('\n')).not.toContain(secret);
  });

  it('that is no JSON, or is not there, is refused by the configuration', () => {
    expect(readKeys(`[ // keys\n{"name": "a", "sha256": "${sha256}"},]`).keys).toHaveLength(1);
    expect(readKeys('[{').faults).toEqual([expect.stringMatching(/^keys\.json:1:3 is not valid JSON/)]);
    expect(readKeys('alice').faults).toEqual([expect.stringMatching(/^keys\.json:1:1 is not JSON, .*--api-keys-file/)]);
    expect(faultsOf({ argv: ['--api-keys-file', 'none.json'] })).toEqual([
      '--api-keys-file names none.json, which does not exist; create it with mcp-gangway key NAME --add FILE, or correct the path, which is relative to the current folder',
    ]);
    expect(faultsOf(keysFile('{}'))).toHaveLength(1);
  });
});

describe('API keys in the environment', () => {
  it.each([
    secret,
    `:${secret}`,
    'alice:',
    `alice:${secret}`,
    `alice:${secret} x`,
    `a b:sha256:${sha256}`,
    'x:y:z',
    ',',
  ])('[S-08] are refused if they are not hashes, and not repeated: %j', (text) => {
    const faults = faultsOf({ env: { GANGWAY_API_KEYS: text } });
    expect(faults[0]).toMatch(/^GANGWAY_API_KEYS\[0\] must be name:sha256:HASH, .*sha256sum/);
    expect(faults.join()).not.toContain(secret);
  });

  it('[S-08] are hashes, as mcp-gangway key prints them', () => {
    const { key, variable } = makeKey('carol');
    const config = configOf({ env: { GANGWAY_API_KEYS: `${variable},bob:SHA256:${sha256}`.replace('SHA', 'sha') } });
    expect(config.apiKeys).toEqual([
      { name: 'carol', sha256: digestOfKey(key) },
      { name: 'bob', sha256 },
    ]);
    expect(variable).not.toContain(key);
  });

  it.each([`alice:sha256:${'0'.repeat(63)}`, `alice:sha256:${'g'.repeat(64)}`, `alice:sha512:${'0'.repeat(64)}`])(
    '[S-08] are refused where the hash is none: %j',
    (text) => {
      expect(faultsOf({ env: { GANGWAY_API_KEYS: text } })[0]).toMatch(/^GANGWAY_API_KEYS\[0\] must be name:sha256/);
    },
  );

  it('cannot be given on the command line, where other users see them', () => {
    expect(faultsOf({ argv: ['--api-key', `alice:${secret}`] })).toEqual([expect.stringContaining('is not an option')]);
  });
});

describe('mcp-gangway key', () => {
  const keyFor = (...argv: string[]) => readConfiguration({ argv, env: {}, readFile: () => '' });

  it('makes a key for a name, whose entry the file takes', () => {
    expect(keyFor('key', 'alice')).toMatchObject({ ok: true, command: 'key', key: { name: 'alice' } });
    const { key, entry } = makeKey('alice');
    expect(key).toMatch(/^mcpgw_[A-Za-z0-9_-]{43}$/);
    expect(entry).not.toContain(key);
    const keys = readKeysFile(`[${entry}]`, 'x', () => undefined);
    expect(keys).toMatchObject([{ name: 'alice', sha256: digestOfKey(key) }]);
    expect(makeKey('alice').key).not.toBe(key);
  });

  it.each([[['key']], [['key', '']], [['key', 'a b']], [['key', 'a', 'b']], [['key', 'a', '--', 'x']]])(
    '%j is a fault',
    (argv) => {
      expect(keyFor(...argv)).toMatchObject({ ok: false });
    },
  );
});
