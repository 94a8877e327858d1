import { describe, expect, it } from 'vitest';
import { deriveServerName, nameOfAddress, serverNameFault } from '../../../src/config/servers/server-name.ts';

const noFile = (): string => {
  throw new Error('ENOENT');
};

describe('serverNameFault', () => {
  it.each([
    ['git', true],
    ['a.b_c-D9', true],
    ['__proto__', true],
    ['x'.repeat(64), true],
    ['x'.repeat(65), false],
    ['', false],
    ['.hidden', false],
    ['a/b', false],
    ['a b', false],
    ['é', false],
    ['healthz', false],
    ['readyz', false],
    ['metrics', false],
    ['api', false],
    ['mcp', true],
  ])('%s is allowed: %s', (name, isAllowed) => {
    expect(serverNameFault(name, '/api/mcp') === undefined).toBe(isAllowed);
  });
});

describe('deriveServerName', () => {
  it.each([
    ['npx -y @scope/server-x', 'server-x'],
    ['npx -y @scope/server-x@1.2.3 /srv', 'server-x'],
    ['npm exec some-server', 'some-server'],
    ['uvx mcp-server-git --repository /x', 'mcp-server-git'],
    ['python3.12 -m mcp_server_time', 'mcp_server_time'],
    ['node dist/foo.js', 'foo'],
    ['/usr/bin/node /srv/foo.mjs --x', 'foo'],
    ['./my-server', 'my-server'],
    ['docker run -i --rm -e TOKEN=x image', 'docker'],
    ['npx', 'server'],
    ['node -e 1+1', 'server'],
    ['npx mcp', 'server'],
    ['npx healthz', 'server'],
  ])('%s → %s', (command, name) => {
    expect(deriveServerName(command.split(' '), '/mcp', noFile)).toBe(name);
  });

  it.each([
    ['node /srv/weather/dist/index.js', 'weather'],
    ['node dist/index.js', 'here'],
    ['node index.js', 'here'],
    ['node /pkg/build/src/main.mjs', 'packaged'],
    ['node /srv/node_modules/@acme/mcp-db/dist/index.js', 'mcp-db'],
    ['npx @acme/server', 'acme'],
    ['/opt/weather/bin/server', 'weather'],
    ['python /srv/weather/server.py', 'weather'],
    ['python server.py', 'server'],
    ['./server', 'server'],
  ])('%s, whose file has a common name, is named after its package or folder: %s', (command, name) => {
    const files: Record<string, string> = {
      'package.json': '{"name": "here"}',
      '/pkg/package.json': '{"name": "@acme/packaged"}',
      '/pkg/build/package.json': '{"type": "module"}',
      '/package.json': 'none',
    };
    expect(deriveServerName(command.split(' '), '/mcp', (path) => files[path] ?? noFile())).toBe(name);
  });

  it('gives way to a path that begins with the fallback', () => {
    expect(deriveServerName(['npx'], '/server', noFile)).toBe('mcp-server');
  });
});

describe('nameOfAddress', () => {
  it.each([
    ['https://mcp.example.com/mcp', 'mcp.example.com'],
    ['http://127.0.0.1:9021/sse', '127.0.0.1-9021'],
    ['http://[::1]:9021/sse', 'server'],
  ])('%s → %s', (url, name) => {
    expect(nameOfAddress({ transport: 'auto', url: new URL(url) } as never, '/mcp')).toBe(name);
  });

  it('names a TCP server after its host and port', () => {
    expect(nameOfAddress({ transport: 'tcp', host: 'db', port: 7000 }, '/mcp')).toBe('db-7000');
  });
});
