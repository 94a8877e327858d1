import { describe, expect, it } from 'vitest';
import { adviceOn } from '../../../../src/app/commands/check/advice.ts';
import { readConfiguration } from '../../../../src/config/config.ts';

/** What is advised on a configuration that is given by arguments: what each is about. */
function aboutsOf(...args: string[]): string[] {
  const read = readConfiguration({ argv: [...args, '--', 'node', 'x.js'], env: {}, readFile: () => '[]' });
  if (!read.ok || !('config' in read)) throw new Error(JSON.stringify(read));
  return adviceOn(read.config).map(({ about }) => about);
}

describe('advice on a configuration', () => {
  it('has nothing to say of the defaults, on this machine, with Redis', () => {
    expect(aboutsOf()).toEqual([]);
    expect(aboutsOf('--redis', 'redis://127.0.0.1')).toEqual([]);
    expect(aboutsOf('--redis', 'rediss://redis.example.com')).toEqual([]);
  });

  it.each<[string[], string]>([
    [['--host', '0.0.0.0'], '--host'],
    [['--host', '0.0.0.0', '--api-keys-file', 'keys.json'], '--host'],
    [['--allow-origin', '*'], '--allow-origin'],
    [['--allow-host', '*'], '--allow-host'],
    [['--session-idle', '100000s'], '--session-idle'],
    [['--sse.heartbeat', '1m'], '--sse.heartbeat'],
    [['--timeouts.connectionIdle', '5s'], '--timeouts.connectionIdle'],
    [['--redis', 'redis://redis.example.com'], '--redis'],
    [['--timeouts.drain', '5s'], 'x'],
    [['--share', 'all'], 'x'],
    [['--defaults.probes.required'], 'x'],
  ])('%j: about %s', (args, about) => expect(aboutsOf(...args)).toEqual([about]));

  it('is silent about a public address with authentication and TLS in front', () => {
    const args = ['--host', '0.0.0.0', '--api-keys-file', 'keys.json', '--public-url', 'https://mcp.example.com'];
    expect(aboutsOf(...args)).toEqual([]);
  });
});
