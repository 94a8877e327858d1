import { describe, expect, it } from 'vitest';
import { deriveServerName, serverNameFault } from '../../../src/config/servers/server-name.ts';

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
    expect(deriveServerName(command.split(' '), '/mcp')).toBe(name);
  });

  it('gives way to a path that begins with the fallback', () => {
    expect(deriveServerName(['npx'], '/server')).toBe('mcp-server');
  });
});
