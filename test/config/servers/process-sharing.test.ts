import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';
import { isolationOf, modernIsolationOf } from '../../../src/config/servers/process-sharing.ts';

const env = { GANGWAY_API_KEYS: 'alice:correct-horse-battery-staple-0123456789' };
const read = (argv: readonly string[], file?: object) =>
  readConfiguration({ argv, env, readFile: () => JSON.stringify(file) });
const faultsOf = (...given: Parameters<typeof read>): readonly string[] => {
  const found = read(...given);
  return found.ok ? [] : found.faults.map(({ path, message }) => `${path} ${message}`);
};
const isolationsOf = (...given: Parameters<typeof read>): readonly string[] => {
  const found = read(...given);
  return found.ok && 'config' in found ? found.config.servers.map(({ isolation }) => isolation) : [];
};

const unused = expect.stringMatching(/has --isolation \w+ and --era modern at a URL.*remove --isolation/);

describe('isolation', () => {
  it.each(['request', 'principal', 'shared'])(
    '[M-06] %s is refused for a modern server at a URL, where it could keep nobody apart',
    (isolation) => {
      for (const transport of ['http', 'auto'])
        expect(
          faultsOf([
            ...['--isolation', isolation, '--era', 'modern', '--transport', transport],
            'https://x.example/mcp',
          ]),
        ).toEqual([unused]);
    },
  );

  it.each<[string, readonly string[]]>([
    ['its era is found out', ['https://x.example/mcp']],
    ['it is legacy', ['--era', 'legacy', 'https://x.example/mcp']],
    ['its lines are on a socket', ['--era', 'modern', 'tcp://127.0.0.1:7000']],
    ['the gateway starts it', ['--era', 'modern', '--', 'server']],
    ['requests without a session are served', ['--era', 'modern', '--sessionless', 'serve', 'https://x.example/mcp']],
  ])('[M-06] is taken where %s', (_, argv) => {
    expect(faultsOf(['--isolation', 'principal', ...argv])).toEqual([]);
    expect(isolationsOf(['--isolation', 'principal', ...argv])).toEqual(['principal']);
  });

  it('[M-06] said for all servers is for those that it can apply to; said for one that it cannot, it is refused', () => {
    const remote = { url: 'https://x.example/mcp', era: 'modern' };
    const mcpServers = { remote, local: { command: 'server' } };
    const argv = ['--config', 'servers.json'];
    expect(isolationsOf([...argv, '--isolation', 'shared'], { mcpServers })).toEqual(['auto', 'shared']);
    expect(faultsOf(argv, { mcpServers: { remote: { ...remote, isolation: 'shared' } } })).toEqual([
      expect.stringMatching(/has isolation shared and era modern at a URL/),
    ]);
  });

  it('[M-05] is one of users where they are known, for servers of both eras, unless something else is said', () => {
    const of = (isolation: 'auto' | 'request' | 'shared', isAuthenticated: boolean) => [
      isolationOf(isolation, isAuthenticated),
      modernIsolationOf({ isolation, era: 'auto', sessionless: 'reject' }, isAuthenticated),
    ];
    expect(of('auto', true)).toEqual(['principal', 'principal']);
    expect(of('auto', false)).toEqual(['request', 'shared']);
    for (const isolation of ['request', 'shared'] as const) expect(of(isolation, true)).toEqual([isolation, isolation]);
  });
});
