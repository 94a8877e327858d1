import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainSpawnFailure } from '../../../../../src/core/backend/stdio/launch/spawn-failure.ts';
import type { StdioOptions } from '../../../../../src/core/backend/stdio/stdio-backend.ts';
import { asMessage } from '../../../../support/as-message.ts';
import { openProgram } from '../harness.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gangway-spawn-'));
  await mkdir(join(directory, 'folder'));
  await writeFile(join(directory, 'plain'), '#!/bin/sh\n');
  await writeFile(join(directory, 'orphan'), '#!/no/such/interpreter -x\n');
  await writeFile(join(directory, 'windows'), '#!/bin/sh\r\nexec cat\r\n');
  for (const script of ['orphan', 'windows']) await chmod(join(directory, script), 0o755);
});
afterAll(() => rm(directory, { recursive: true }));

describe('a program that cannot be started', () => {
  const cases: [string, () => Partial<StdioOptions>, RegExp][] = [
    [
      'command not in PATH',
      () => ({ command: 'no-such-cmd' }),
      /no-such-cmd was not found in PATH\. Install it.* PATH is \S+\.$/,
    ],
    ['a whole command line', () => ({ command: 'no-such cmd' }), /arguments belong in "args"/],
    ['no such path', () => ({ command: './none' }), /command \.\/none does not exist/],
    ['no such working directory', () => ({ command: 'node', cwd: '/no/such' }), /directory \/no\/such does not exist/],
    [
      'a file as working directory',
      () => ({ command: 'node', cwd: join(directory, 'plain') }),
      /plain is not a directory/,
    ],
    ['not executable', () => ({ command: join(directory, 'plain') }), /plain is not executable\. Run chmod \+x/],
    ['not executable, from PATH', () => ({ command: 'plain', env: { PATH: directory } }), /plain is not executable/],
    ['a directory', () => ({ command: './folder', cwd: directory }), /folder is a directory/],
    [
      'Windows line ends',
      () => ({ command: './windows', cwd: directory }),
      /Windows line ends \(CR LF\).*LF line ends/,
    ],
    ['no interpreter', () => ({ command: './orphan', cwd: directory }), /interpreter \/no\/such\/interpreter does not/],
    ['NUL in an argument', () => ({ command: 'node', args: ['a\0b'] }), /NUL byte/],
    ['empty command', () => ({ command: '' }), /is empty/],
    ['arguments too long', () => ({ command: 'node', args: ['x'.repeat(8 << 20)] }), /are too long/],
  ];

  it.each<[string, Partial<StdioOptions>, RegExp]>([
    ['command not in PATH', { command: 'no-such-cmd' }, /full path after "--"\./],
    ['a whole command line', { command: 'no-such cmd' }, /each argument as a separate word\./],
    ['no such path', { command: './none' }, /correct the command after "--"\.$/],
    ['no such working directory', { command: 'node', cwd: '/no/such' }, /correct --cwd\.$/],
  ])('that was given on the command line is corrected there: %s', async (_, options, detail) => {
    const opened = openProgram({ command: '', ...options, isOnCommandLine: true });
    expect((await opened.end()).detail).toMatch(detail);
  });

  it.each(cases)('[F12] ends once as failed and says what to do: %s', async (_, options, detail) => {
    const opened = openProgram({ command: '', ...options() });
    expect(opened.ends, 'nothing is told from inside openStdio').toEqual([]);
    expect(opened.backend.pid).toBeUndefined();
    expect(opened.backend.send(asMessage('{}')), 'it may still start').toBe('sent');
    const end = await opened.end();
    expect(opened.backend.send(asMessage('{}'))).toBe('ended');
    expect(end.reason).toBe('failed');
    expect(end.detail).toMatch(detail);
    expect(end.isNotFound).toBe(/^The command .* (was not found in PATH|does not exist)/.test(end.detail));
    expect(end.cause).toBeInstanceOf(Error);
    await opened.backend.close();
    expect(opened.ends).toHaveLength(1);
  });

  it.each([
    ['EMFILE', /too many open files.*ulimit -n/],
    ['EAGAIN', /process limit is reached.*pids limit/],
    ['ENOMEM', /memory/],
    ['EIO', /could not be started \(EIO\)/],
  ])('[F12] explains %s', (code, detail) => {
    const program = { command: process.execPath, args: [], env: {} };
    const explained = explainSpawnFailure(Object.assign(new Error(code), { code }), program);
    expect(explained).toEqual({ detail: expect.stringMatching(detail), isNotFound: false });
  });

  it('[F12] explains a name that is in no folder of PATH, one of which cannot be entered', () => {
    const explain = (command: string) =>
      explainSpawnFailure(Object.assign(new Error('spawn'), { code: 'EACCES' }), {
        command,
        args: [],
        env: { PATH: `${directory}/closed:${directory}` },
      });
    expect(explain('no-such-cmd')).toEqual({
      detail: expect.stringMatching(/^The command no-such-cmd was not found in PATH\. Install it/),
      isNotFound: true,
    });
    expect(explain('plain').detail).toMatch(/plain is not executable/);
    expect(explain('./no-such-cmd')).toEqual({
      detail: expect.stringMatching(/may not run the command .*, or may not enter its folder\. Grant/),
      isNotFound: false,
    });
  });

  it('P12: tells no argument and no value of the environment', async () => {
    const opened = openProgram({ command: 'no-such', args: ['canary'], env: { PATH: '/bin', KEY: 'canary\0' } });
    const { detail } = await opened.end();
    expect(detail).not.toContain('canary');
  });
});

describe('a program that runs', () => {
  it('tells onStarted its pid, not from inside openStdio', async () => {
    const started: number[] = [];
    const opened = openProgram({ command: 'cat', onStarted: (pid) => started.push(pid) });
    expect(started).toEqual([]);
    opened.backend.send(asMessage('{}'));
    await opened.messages.next();
    expect(started).toEqual([opened.backend.pid]);
    await opened.backend.close();
  });

  it.runIf(process.platform === 'linux')('[S13] inherits no file and no socket of the gateway', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const file = await open(join(directory, 'plain'));
    const opened = openProgram({ command: 'ls', args: ['-l', '/proc/self/fd'] });
    await opened.end();
    const seen = opened.messages.items.flatMap((line) => / (\d+) -> (.*)$/.exec(line)?.slice(1, 3) ?? []);
    const numbers = seen.filter((_, at) => at % 2 === 0).map(Number);
    // Above 15 there can be what a careless launcher left open: Node.js does not look further (uv_disable_stdio_inheritance).
    expect(numbers.filter((number) => number <= 15)).toEqual([0, 1, 2, 3]); // 3 is the directory that ls reads
    expect(seen).not.toContain(join(directory, 'plain'));
    await file.close();
    server.close();
  });

  it('leads its own process group', async () => {
    const opened = openProgram({ command: 'sh', args: ['-c', 'ps -o pgid= -p $$'] });
    expect(Number(await opened.messages.next())).toBe(opened.backend.pid);
    await opened.end();
  });
});
