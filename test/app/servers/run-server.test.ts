import { describe, expect, it } from 'vitest';
import { configurationDigest, openersOf } from '../../../src/app/servers/run-server.ts';
import { type GatewayConfig, readConfiguration, type ServerConfig } from '../../../src/config/config.ts';
import { features } from '../../../src/features.ts';

function read(...argv: string[]): { config: GatewayConfig; server: ServerConfig } {
  const result = readConfiguration({ argv, env: {}, readFile: () => '' });
  if (!result.ok || !('config' in result)) throw new Error(JSON.stringify(result));
  return { config: result.config, server: result.config.servers[0] as ServerConfig };
}

const digest = (...argv: string[]) => configurationDigest(read(...argv).server);

describe('the digest of a server', () => {
  const sse = (url: string, ...options: string[]) => digest('--transport', 'sse', ...options, url);

  it('differs for another address, transport, header or command', () => {
    const digests = [
      sse('http://a/sse'),
      sse('https://a/sse'),
      sse('http://a:81/sse'),
      sse('http://a/other'),
      sse('http://a/sse?key=1'),
      sse('http://a/sse', '--header', 'A: 1'),
      digest('tcp://a:1'),
      digest('tcp://a:2'),
      digest('unix:///a'),
      digest('--', 'a'),
    ];
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('is the same where only a secret or a time is another', () => {
    const one = sse('http://a/sse?key=1', '--header', 'A: 1', '--defaults.timeouts.start', '1ms');
    expect(sse('http://a/sse?key=2', '--header', 'a: 2')).toBe(one);
  });
});

const silent = { emit: () => undefined, processInterceptors: () => [] };

describe('files of certificates', () => {
  it.each([
    ['cannot be read', ['--defaults.tls.ca', '/no/such/file'], 'The file of --defaults.tls.ca cannot be read'],
    [
      'hold no certificate',
      ['--defaults.tls.ca', '/dev/null'],
      'The file of --defaults.tls.ca contains no PEM certificate',
    ],
    [
      'cannot be used',
      ['--defaults.tls.cert', import.meta.filename, '--defaults.tls.key', import.meta.filename],
      'The files of --defaults.tls.ca, --defaults.tls.cert, --defaults.tls.key cannot be used',
    ],
  ])('that %s are told at the start', (_, options, message) => {
    const { config, server } = read('--transport', 'sse', ...options, 'https://a/sse');
    expect(() => openersOf(server, { config, features, environment: {} }, silent)).toThrow(message);
  });
});
