import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { changeServers } from '../../../src/app/commands/servers-command.ts';
import { readConfiguration } from '../../../src/config/config.ts';

/** A folder with this configuration file; undefined for none. */
function inFolder(text?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-servers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'gangway.json');
  if (text !== undefined) writeFileSync(file, text);
  const sources = {
    env: {},
    readFile: (path: string) => readFileSync(path, 'utf8'),
    listFolder: (path: string) => (statSync(path).isDirectory() ? readdirSync(path) : undefined),
    findCommand: () => false,
  };
  const run = (...argv: string[]) => {
    const [command = '', ...rest] = argv;
    const read = readConfiguration({ ...sources, argv: [command, ...rest] });
    if (!read.ok)
      return { exitCode: 2, stderr: read.faults.map(({ path, message }) => `${path}: ${message}`).join('\n') };
    if (!('request' in read)) throw new Error('not one of these commands');
    return changeServers(read.request, sources);
  };
  const servers = () => {
    const read = readConfiguration({ ...sources, argv: ['config', 'print', '--config', file] });
    return read.ok && 'config' in read ? read.config.servers : [];
  };
  const names = () => servers().map(({ name }) => name);
  const server = (name: string) => servers().find((each) => each.name === name);
  const added = () => readdirSync(join(folder, 'servers.d')).toSorted();
  return { folder, file, run, names, server, added, place: (name: string) => join(folder, 'servers.d', name) };
}

const oneServer = '{ "mcpServers": { "own": { "command": "own" } } }';

describe('add', () => {
  test('writes a file of its own beside the configuration, which belongs to it without include', () => {
    const { file, run, names, added, place } = inFolder(oneServer);
    const { exitCode, stdout } = run('add', 'git', '--config', file, '--', 'uvx', 'mcp-server-git', '--verbose');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining(place('git.json'))]);
    expect(JSON.parse(readFileSync(place('git.json'), 'utf8'))).toEqual({
      mcpServers: { git: { command: 'uvx', args: ['mcp-server-git', '--verbose'] } },
    });
    expect([names(), added()]).toEqual([['own', 'git'], ['git.json']]);
    expect(readFileSync(file, 'utf8')).toBe(oneServer);
  });

  test('creates a missing configuration file', () => {
    const { file, run, names } = inFolder();
    expect(run('add', 'maps', '--config', file, 'https://maps.test/mcp')).toMatchObject({ exitCode: 0 });
    expect(names()).toEqual(['maps']);
  });

  test('sets options and variables; only the owner can read the file', () => {
    const { file, run, place } = inFolder(oneServer);
    const options = ['--defaults.hibernateAfter', '10m', '--defaults.timeouts.start', '5s', '--env', 'TOKEN=a=b'];
    expect(run('add', 'git', '--config', file, ...options, '--', 'git-server')).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(readFileSync(place('git.json'), 'utf8')).mcpServers.git).toEqual({
      command: 'git-server',
      env: { TOKEN: 'a=b' },
      hibernateAfter: '10m',
      timeouts: { start: '5s' },
    });
    expect(statSync(place('git.json')).mode & 0o777).toBe(0o600);
  });

  test('changes nothing if the configuration would be invalid', () => {
    const { folder, file, run, names } = inFolder(oneServer);
    const { exitCode, stderr } = run('add', 'git', '--config', file, '--defaults.timeouts.start', 'never', '--', 'x');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('timeouts.start')]);
    expect(run('add', 'own', '--config', file, '--', 'x')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has the name of another server'),
    });
    expect([names(), readdirSync(folder)]).toEqual([['own'], ['gangway.json']]);
  });

  test('splits one quoted word into a command and its arguments, as the command line does', () => {
    const { file, run, server } = inFolder(oneServer);
    run('add', 'git', '--config', file, '--', 'uvx mcp-server-git "a b"');
    expect(server('git')).toMatchObject({ command: 'uvx', args: ['mcp-server-git', 'a b'] });
  });

  test('says that a second server changes the path of the first, and refuses a folder that is missing', () => {
    const { folder, file, run } = inFolder(oneServer);
    expect(run('add', 'git', '--config', file, '--', 'x').stdout).toContain(
      'The endpoints are /own/mcp and /git/mcp now',
    );
    expect(run('add', 'third', '--config', file, '--', 'x').stdout).not.toContain('endpoints');
    const astray = join(folder, 'missing', 'gangway.json');
    expect(run('add', 'git', '--config', astray, '--', 'x')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('does not exist'),
    });
  });

  test('replaces a server only if told so', () => {
    const { file, run, place } = inFolder(oneServer);
    run('add', 'git', '--config', file, '--', 'first');
    expect(run('add', 'git', '--config', file, '--', 'second')).toMatchObject({ exitCode: 1 });
    expect(readFileSync(place('git.json'), 'utf8')).toContain('first');
    expect(run('add', 'git', '--config', file, '--replace', '--', 'second')).toMatchObject({ exitCode: 0 });
    expect(readFileSync(place('git.json'), 'utf8')).toContain('second');
  });

  test.each([
    [['add', '--config', 'f', '--', 'x'], 'add: needs the name of a server'],
    [['add', '../git', '--config', 'f', '--', 'x'], 'the name after add: is not a valid server name'],
    [['add', 'git', '--config', 'f'], 'add: needs one server'],
    [['add', 'git', '--config', 'f', 'https://a.test/mcp', '--', 'x'], 'add: needs one server'],
    [['add', 'git', '--', 'x'], 'add: needs the configuration file'],
    [['add', 'git', '--config', 'f', '--port', '1', '--', 'x'], '--port: is an option of the gateway'],
    [['add', 'git', '--config', 'f', '--name', 'other', '--', 'x'], '--name: is not an option of mcp-gangway add'],
    [['remove', '--config', 'f'], 'remove: needs the name of a server'],
    [['list', 'git', '--config', 'f'], 'list: takes no further word'],
  ])('%j says what is wrong', (argv, fault) => {
    expect(inFolder().run(...argv)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(fault) });
  });
});

describe('remove', () => {
  test('deletes the file of a server that was added', () => {
    const { file, run, names, added } = inFolder(oneServer);
    run('add', 'git', '--config', file, '--', 'git-server');
    expect(run('remove', 'git', '--config', file)).toMatchObject({ exitCode: 0 });
    expect([names(), added()]).toEqual([['own'], []]);
  });

  test('keeps the last server, one that a view needs, and one of the configuration file itself', () => {
    const view = '{ "mcpServers": { "own": { "command": "own" } }, "views": { "both": ["own", "git"] } }';
    const { file, run, added } = inFolder(oneServer);
    run('add', 'git', '--config', file, '--', 'git-server');
    writeFileSync(file, view);
    expect(run('remove', 'git', '--config', file)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('both'),
    });
    expect(run('remove', 'own', '--config', file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(file),
    });
    expect(run('remove', 'other', '--config', file)).toMatchObject({ exitCode: 1 });
    writeFileSync(file, '{}');
    expect(run('remove', 'git', '--config', file)).toMatchObject({
      stderr: expect.stringContaining('the only server'),
    });
    expect(added()).toEqual(['git.json']);
  });
});

describe('list', () => {
  test('shows the servers and where they are, without what may be secret in a URL', () => {
    const { file, run, folder } = inFolder(oneServer);
    run('add', 'maps', '--config', file, 'https://maps.test/mcp?key=secret');
    const { stdout = '' } = run('list', '--config', file);
    expect(stdout).toMatch(/^own +own +.*gangway\.json\nmaps +https:\/\/maps\.test\/mcp +.*maps\.json\n$/);
    expect(JSON.parse(run('list', '--config', file, '--json').stdout ?? '')).toEqual([
      { name: 'own', command: ['own'] },
      { name: 'maps', url: 'https://maps.test/mcp', file: join(folder, 'servers.d', 'maps.json') },
    ]);
  });

  test('says what is wrong with a folder that cannot be used', () => {
    const { file, run, folder } = inFolder(oneServer);
    mkdirSync(join(folder, 'servers.d'));
    writeFileSync(join(folder, 'servers.d', 'broken.json'), '{');
    expect(run('list', '--config', file)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('broken.json'),
    });
  });
});
