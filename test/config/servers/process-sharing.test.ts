import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';
import {
  isolationOf,
  type KnownUsers,
  modernIsolationOf,
  reuseOf,
} from '../../../src/config/servers/process-sharing.ts';

const env = { GANGWAY_API_KEYS: `alice:sha256:${'0'.repeat(64)}` };
const read = (argv: readonly string[], file?: object) =>
  readConfiguration({ argv, env, readFile: () => JSON.stringify(file) });
const faultsOf = (...given: Parameters<typeof read>): readonly string[] => {
  const found = read(...given);
  return found.ok ? [] : found.faults.map(({ path, message }) => `${path} ${message}`);
};
const sharesOf = (...given: Parameters<typeof read>): readonly string[] => {
  const found = read(...given);
  return found.ok && 'config' in found ? found.config.servers.map(({ share }) => share) : [];
};

const unused = expect.stringMatching(/has --share \w+ and --era modern at a URL.*remove --share/);

describe('share', () => {
  it.each(['request', 'session', 'user', 'all'])(
    '[M-06] %s is refused for a modern server at a URL, where it could keep nobody apart',
    (share) => {
      for (const transport of ['http', 'auto'])
        expect(
          faultsOf([...['--share', share, '--era', 'modern', '--transport', transport], 'https://x.example/mcp']),
        ).toEqual([unused]);
    },
  );

  it.each<[string, readonly string[]]>([
    ['its era is found out', ['https://x.example/mcp']],
    ['it is legacy', ['--era', 'legacy', 'https://x.example/mcp']],
    ['its lines are on a socket', ['--era', 'modern', 'tcp://127.0.0.1:7000']],
    ['the gateway starts it', ['--era', 'modern', '--', 'server']],
    [
      'requests without a session are served',
      ['--era', 'modern', '--defaults.sessionless', 'serve', 'https://x.example/mcp'],
    ],
  ])('[M-06] is taken where %s', (_, argv) => {
    expect(faultsOf(['--share', 'user', ...argv])).toEqual([]);
    expect(sharesOf(['--share', 'user', ...argv])).toEqual(['user']);
  });

  it('[M-06] said for all servers is for those that it can apply to; said for one that it cannot, it is refused', () => {
    const remote = { url: 'https://x.example/mcp', era: 'modern' };
    const mcpServers = { remote, local: { command: 'server' } };
    const argv = ['--config', 'servers.json'];
    expect(sharesOf([...argv, '--share', 'all'], { mcpServers })).toEqual(['auto', 'all']);
    expect(faultsOf(argv, { mcpServers: { remote: { ...remote, share: 'all' } } })).toEqual([
      expect.stringMatching(/has share all and era modern at a URL/),
    ]);
  });

  it('that no server can have is one fault, and not one for each server', () => {
    const mcpServers = { a: { command: 'x' }, b: { command: 'y' } };
    const argv = ['--config', 'servers.json', '--share', 'user', '--host', '0.0.0.0'];
    const found = readConfiguration({ argv, env: {}, readFile: () => JSON.stringify({ mcpServers }) });
    expect(found.ok ? [] : found.faults).toEqual([
      { path: '--share', message: expect.stringMatching(/needs authentication/), position: undefined },
    ]);
  });

  it('[M-05] is one of users where they are known, for servers of both eras, unless something else is said', () => {
    const of = (share: 'auto' | 'session' | 'user' | 'all' | 'request', known: KnownUsers) => [
      isolationOf(share, known),
      modernIsolationOf({ share }, known),
      reuseOf(share, known),
    ];
    expect(of('auto', 'users')).toEqual(['principal', 'principal', 'user']);
    expect(of('auto', 'local')).toEqual(['principal', 'shared', 'user']);
    expect(of('auto', 'unknown')).toEqual(['request', 'shared', 'none']);
    expect(of('session', 'users')).toEqual(['principal', 'principal', 'none']);
    expect(of('session', 'local')).toEqual(['request', 'shared', 'none']);
    expect(of('user', 'users')).toEqual(['principal', 'principal', 'user']);
    expect(of('user', 'unknown')).toEqual(['request', 'request', 'none']);
    for (const known of ['users', 'local', 'unknown'] as const) {
      expect(of('all', known)).toEqual(['shared', 'shared', 'all']);
      expect(of('request', known)).toEqual(['request', 'request', 'none']);
    }
  });

  it.each<[string, readonly string[]]>([
    ['at a URL', ['https://x.example/mcp']],
    ['of the modern era', ['--era', 'modern', '--', 'server']],
    ['with credentials of its clients', ['--defaults.credentials', 'TOKEN={header:X-Token}', '--', 'server']],
  ])('[M-06] user is taken for a server %s', (_, argv) => {
    expect(faultsOf(['--share', 'user', ...argv])).toEqual([]);
  });

  it.each<[string, readonly string[], boolean]>([
    ['on a loopback address', [], true],
    ['on a network address', ['--host', '0.0.0.0'], false],
    ['with a public URL', ['--public-url', 'https://x.example'], false],
    ['with another host name', ['--allow-host', 'x.example'], false],
    ['with other instances', ['--redis', 'redis://127.0.0.1'], false],
  ])('user without authentication is for a gateway that only this machine can reach: %s', (_, argv, isTaken) => {
    const found = readConfiguration({ argv: ['--share', 'user', ...argv, '--', 'x'], env: {}, readFile: () => '' });
    const refused = found.ok ? [] : found.faults.map(({ message }) => message);
    expect(refused).toEqual(isTaken ? [] : [expect.stringMatching(/needs authentication/)]);
  });
});

describe('affinity', () => {
  it.each([
    ['a server at a URL', ['https://x.example/mcp'], /only for legacy STDIO servers/],
    ['a modern server', ['--era', 'modern', '--', 'server'], /only for legacy STDIO servers/],
    ['sessions that share nothing', ['--share', 'session', '--', 'server'], /no client shares a process/],
    ['sessions that cannot move', ['--defaults.onExit', 'end', '--', 'server'], /moves sessions between processes/],
  ])('is refused for %s', (_, argv, fault) => {
    expect(faultsOf(['--defaults.affinity', '{meta:openai/session}', ...argv])).toEqual([expect.stringMatching(fault)]);
  });

  it.each(['{cookie:x}', '{header: X-Conversation}', '{header:X Y}'])('is refused if it is no template: %s', (text) => {
    expect(faultsOf(['--defaults.affinity', text, '--', 'server'])).toEqual([expect.stringMatching(/must consist of/)]);
  });
});
