import { describe, expect, it } from 'vitest';
import { configurationDigest } from '../../../src/app/servers/run-server.ts';
import { type Configuration, readConfiguration, type ServerConfig } from '../../../src/config/config.ts';
import { configuredCredentials, usesClientCredentials } from '../../../src/config/options/client-credential-options.ts';

const read = (argv: readonly string[], file?: object): Configuration =>
  readConfiguration({
    argv: file === undefined ? argv : ['--config', 'config.json', ...argv],
    env: {},
    readFile: () => JSON.stringify(file),
  });

function serverOf(argv: readonly string[], file?: object): ServerConfig {
  const result = read(argv, file);
  if (!result.ok || !('config' in result)) throw new Error(JSON.stringify(result));
  return result.config.servers[0] as ServerConfig;
}

const mapped = ['--defaults.credentials', 'GITHUB_TOKEN={header:X-GitHub-Token}'];
const proxied = ['--auth.proxy.userHeader', 'X-User', '--auth.proxy.addresses', '127.0.0.1'];
const fileOf = (server: object, more: object = {}): object => ({ ...more, mcpServers: { git: server } });
const token = { GITHUB_TOKEN: '{header:X-GitHub-Token}' };

describe('credentials of clients', () => {
  it('are variables of a STDIO server and headers of a remote one', () => {
    expect(configuredCredentials(serverOf([...mapped, '--', 'x']))).toEqual({
      as: 'variables',
      parts: new Map([['GITHUB_TOKEN', [{ kind: 'header', name: 'x-github-token' }]]]),
    });
    const remote = { url: 'https://x/mcp', credentials: { 'X-User': '{claim:sub}' } };
    expect(configuredCredentials(serverOf(proxied, fileOf(remote)))).toEqual({
      as: 'headers',
      parts: new Map([['x-user', [{ kind: 'claim', name: 'sub' }]]]),
    });
    expect(configuredCredentials(serverOf(['--', 'x']))).toBeUndefined();
  });

  it('make a server another one for each client, and another one than it is without them', () => {
    const [plain, one] = [serverOf(['--', 'x']), serverOf([...mapped, '--', 'x'])];
    expect([usesClientCredentials(plain), usesClientCredentials(one)]).toEqual([false, true]);
    const other = serverOf(['--defaults.credentials', 'GITHUB_TOKEN={header:X-Other}', '--', 'x']);
    expect(new Set([plain, one, other].map(configurationDigest)).size).toBe(3);
  });

  it('that are given for all servers do not concern a socket', () => {
    const file = { defaults: { credentials: token }, mcpServers: { git: { url: 'tcp://x:1' } } };
    expect(serverOf([], file).credentials).toEqual({});
  });

  it.each<[string, readonly string[], object | undefined, RegExp]>([
    [
      'a value that names nothing',
      ['--defaults.credentials', 'A=secret', '--', 'x'],
      undefined,
      /must contain a header or a claim/,
    ],
    ['a spare process', [...mapped, '--warm', '1', '--', 'x'], undefined, /--defaults.credentials and --warm/],
    ['a process for all', [...mapped, '--era', 'modern', '--', 'x'], undefined, /share one process/],
    [
      'a name in env too',
      [...mapped, '--env', 'GITHUB_TOKEN=1', '--', 'x'],
      undefined,
      /in --env and in --defaults.credentials/,
    ],
    [
      'a variable with a hyphen',
      ['--defaults.credentials', 'A-B={header:a}', '--', 'x'],
      undefined,
      /not a valid environment variable name/,
    ],
    ['shared processes', [...mapped, '--share', 'all', '--', 'x'], undefined, /share all/],
    [
      'a claim of nobody',
      ['--defaults.credentials', 'A={claim:sub}', '--', 'x'],
      undefined,
      /needs authentication of clients/,
    ],
    [
      'the token for the gateway',
      [...proxied, '--defaults.credentials', 'A={header:Authorization}', '--', 'x'],
      undefined,
      /must not reach a server/,
    ],
    [
      'the header of a proxy',
      [...proxied, '--defaults.credentials', 'A={header:x-user}', '--', 'x'],
      undefined,
      /{claim:sub}/,
    ],
    ...['Host', 'Mcp-Session-Id', 'Cookie'].map((name): [string, readonly string[], undefined, RegExp] => [
      `what is in ${name}`,
      ['--defaults.credentials', `A={header:${name}}`, '--', 'x'],
      undefined,
      /a value in --defaults.credentials whose header is/,
    ]),
    ['a socket', [], fileOf({ url: 'unix:///s', credentials: token }), /tcp:\/\/ and unix:\/\/ servers cannot receive/],
    ['a header of the transport', [], fileOf({ url: 'http://x', credentials: { Host: '{header:a}' } }), /sets itself/],
    [
      'a header that is in headers too',
      [],
      fileOf({ url: 'http://x', headers: { 'x-a': '1' }, credentials: { 'X-A': '{header:b}' } }),
      /in credentials and in headers/,
    ],
    [
      'a header that is forwarded too',
      [],
      fileOf({ url: 'http://x', forwardHeaders: ['x-a'], credentials: { 'X-A': '{header:b}' } }),
      /in credentials and in headers or forwardHeaders/,
    ],
    [
      'a header twice',
      [],
      fileOf({ url: 'http://x', credentials: { 'X-A': '{header:b}', 'x-a': '{header:b}' } }),
      /twice/,
    ],
    ...[
      'PATH',
      'LD_PRELOAD',
      'NODE_OPTIONS',
      'npm_config_script_shell',
      'PYTHONPATH',
      'BASH_ENV',
      'UV_INDEX_URL',
      'EDITOR',
    ].map((name): [string, readonly string[], undefined, RegExp] => [
      `${name}, which controls the code that runs`,
      ['--defaults.credentials', `${name}={header:a}`, '--', 'x'],
      undefined,
      /controls the code that runs/,
    ]),
  ])('are refused with %s', (_, argv, file, message) => {
    const result = read(argv, file);
    expect(result.ok ? [] : result.faults.map((fault) => fault.message)).toEqual([expect.stringMatching(message)]);
    expect(JSON.stringify(result)).not.toContain('=secret');
  });
});
