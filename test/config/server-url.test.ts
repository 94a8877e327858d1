import { describe, expect, it } from 'vitest';
import { renderIssueMessage } from '../../src/config/issues.ts';
import { namesAt } from '../../src/config/options/option-names.ts';
import { readServerUrl, type TransportChoice } from '../../src/config/server-url.ts';

const read = (text: string, transport: TransportChoice = 'auto') => {
  const found = readServerUrl(text, transport);
  return found.ok ? found.address : renderIssueMessage(found.message, namesAt('--', false));
};

describe('the URL of a server', () => {
  it.each([
    ['tcp://mcp:9000', { transport: 'tcp', host: 'mcp', port: 9000 }],
    ['TCP://127.0.0.1:65535/', { transport: 'tcp', host: '127.0.0.1', port: 65535 }],
    ['tcp://[::1]:1', { transport: 'tcp', host: '::1', port: 1 }],
    ['unix:///run/a b.sock', { transport: 'unix', path: '/run/a b.sock' }],
    ['ws://a:1/mcp?k=1#x', { transport: 'ws', url: new URL('ws://a:1/mcp?k=1') }],
    ['WSS://a/', { transport: 'ws', url: new URL('wss://a/') }],
  ])('%s', (text, address) => {
    expect(read(text)).toEqual(address);
  });

  it.each(['auto', 'http', 'sse'] as const)('of http and https is of the transport that is said: %s', (transport) => {
    expect(read('https://a/x?k=1#x', transport)).toEqual({ transport, url: new URL('https://a/x?k=1') });
  });

  it.each([
    ['tcp://host', 'tcp://host:port'],
    ['tcp://host:0', 'tcp://host:port'],
    ['tcp://host:65536', 'tcp://host:port'],
    ['tcp://user@host:1', 'tcp://host:port'],
    ['tcp://host:1/path', 'tcp://host:port'],
    ['unix://run/x', 'absolute path'],
    ['unix:///', 'absolute path'],
    ['unix:///a\0b', 'absolute path'],
    [`unix:///${'x'.repeat(103)}`, 'more than 103 bytes'],
    ['wss://user:pw@host/', "write --header 'Authorization: Basic"],
    ['ftp://host/', 'must begin with'],
    ['ws://host\\@evil/', 'not a valid URL'],
    ['wss://', 'not a valid URL'],
    ['file:///etc/passwd', 'must begin with'],
  ])('%s is refused', (text, message) => {
    expect(read(text)).toContain(message);
  });

  it.each([
    ['http://user:pw@host/', "write --header 'Authorization: Basic"],
    ['http://token@host/', "write --header 'Authorization: Basic"],
    ['http://host\\@evil/', 'not a valid URL'],
    ['http://ho st/', 'not a valid URL'],
    ['http://host/\t', 'not a valid URL'],
    ['http://', 'not a valid URL'],
    ['tcp://host:1', 'remove the transport'],
    ['ws://token@host/', 'remove the transport'],
  ])('[A07] %s is refused with sse', (text, message) => {
    expect(read(text, 'sse')).toContain(message);
    expect(read(text, 'sse')).not.toMatch(/pw|token|evil/);
  });
});
