import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/config/config.ts';
import { isPackageWord, nameOfPackageRequest, readPackage } from '../../src/config/servers/package-request.ts';

/** What a command means, in short: the package as it is written, its program and arguments. */
function meaningOf(...words: [string, ...string[]]): string {
  const read = readPackage(words, 'install');
  if (!read.ok) return 'fault';
  if (read.request === undefined) return 'command';
  const { program = '', args, isLauncher } = read.request;
  return [isLauncher ? 'launched' : 'named', nameOfPackageRequest(read.request), program, ...args].join(' ');
}

it.each([
  [['@scope/name'], 'named @scope/name '],
  [['@scope/name@1.2.3', '--port', '1'], 'named @scope/name@1.2.3  --port 1'],
  [['npx:name@^1'], 'named npx:name@^1 '],
  [['npm:@scope/name@latest'], 'named @scope/name '],
  [['uvx:mcp-server-git[cli]==1.0'], 'named uvx:mcp-server-git[cli]@1.0 '],
  [['pypi:mcp-server-git@1.0'], 'named uvx:mcp-server-git@1.0 '],
  [['npx', '-y', '@scope/name', '-y'], 'launched @scope/name  -y'],
  [['npx', 'name@2', 'a'], 'launched npx:name@2  a'],
  [['npx', '-y', '--package=@scope/name', 'program', 'a'], 'launched @scope/name program a'],
  [['npx', '-p', 'name', 'program'], 'launched npx:name program'],
  [['uvx', 'name@1.0', 'a'], 'launched uvx:name@1.0  a'],
  [['uvx', '--from', 'name==1.0', 'program'], 'launched uvx:name@1.0 program'],
] as const)('%j is a package', (words, meaning) => {
  expect(meaningOf(...(words as unknown as [string, ...string[]]))).toBe(meaning);
});

it.each([
  ['name'],
  ['./@scope/name'],
  ['/srv/@scope/name'],
  ['@scope'],
  ['npx', 'github:user/project'],
  ['npx', './name'],
  ['npx', 'user/project'],
  ['npx', '-c', 'name'],
  ['npx', '--registry=x', 'name'],
  ['npx', '--package=name', '--', 'x'],
  ['npx'],
  ['uvx', '--with', 'mcp<2', 'name'],
  ['uvx', '--from', 'git+https://example.com/x', 'name'],
  ['/usr/bin/npx', 'name'],
  ['npm', 'exec', 'name'],
] as [string, ...string[]][])('%s %s is a command', (...words) => {
  expect(meaningOf(...words)).toBe('command');
});

it.each(['npx:', 'npx:../x', '@scope/na me', '@scope/../x', 'uvx:-e', 'uvx:name@', `npx:${'x'.repeat(300)}`])(
  '%s is a fault: it has the form of a package, and names none',
  (word) => {
    expect(isPackageWord(word)).toBe(true);
    expect(meaningOf(word)).toBe('fault');
  },
);

describe('the command line', () => {
  const serverOf = (...argv: readonly string[]) => {
    const read = readConfiguration({ argv, env: {}, readFile: () => '' });
    if (!read.ok || !('config' in read)) throw new Error(JSON.stringify(read));
    return read.config.servers[0];
  };

  it('gives the server all words after a package, as after --', () => {
    const words = ['@scope/name', 'a', '--port', '1', '--', 'b'];
    const expected = { name: 'name', command: '@scope/name', args: words.slice(1) };
    expect(serverOf('--port', '9', ...words)).toMatchObject(expected);
    expect(serverOf('check', ...words)).toMatchObject(expected);
    expect(serverOf('--', ...words)).toMatchObject(expected);
  });

  it('names a server after its package', () => {
    expect(serverOf('uvx:mcp-server-git@1.0')?.name).toBe('mcp-server-git');
    expect(serverOf('--name', 'git', 'uvx:mcp-server-git')?.name).toBe('git');
  });

  it('takes a package for the value of an option only where it is one', () => {
    expect(serverOf('--cwd', '@scope/folder', '--', 'node', 'x.js')).toMatchObject({ command: 'node' });
  });
});
