import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';

const folder = mkdtempSync(join(tmpdir(), 'gangway-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a program of the checkout ends with these words; its environment has what is given, and no more of PATH than that. */
const run = (program: string, words: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  new Promise((resolve) => {
    const args = [`${root}${program}`, ...words.split(' ').filter((word) => word !== '')];
    const child = execFile(
      process.execPath,
      args,
      { env: { ...process.env, ...env }, cwd: root },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });

/** Fails unless the program ends with 1 and one line on stderr, and resolves with that line. */
async function refusalOf(program: string, words: string, env?: Readonly<Record<string, string>>): Promise<string> {
  const { code, stderr } = await run(program, words, env);
  expect(stderr).toMatch(/^[^\n]+\n$/);
  expect(code).toBe(1);
  return stderr;
}

describe('a command that makes no sense is refused in one line', () => {
  test.each([
    ['bench.mjs', '--rounds 0', '--rounds is a whole number from 1 to 50, and not "0"'],
    ['bench.mjs', '--round 1', "Unknown option '--round'. See node bench/bench.mjs --help"],
    ['bench.mjs', '--target our', 'There is no target our; see node bench/bench.mjs --list'],
    ['bench.mjs', '--axis * --rounds abc', '--rounds is a whole number from 1 to 50, and not "abc"'],
    [
      'bench.mjs',
      '--axis evnts',
      'There is no axis evnts; there are sessions, among-sessions, payload, events, instances',
    ],
    ['peers.mjs', '--part all', '--part is figures or trials, and not "all"'],
    ['peers.mjs', '--target our', 'There is no target our; there are'],
    ['profile.mjs', '--seconds 0', '--seconds is a number above 0, and not "0"'],
    ['profile.mjs', '--target our', 'There is no target our; see node bench/bench.mjs --list'],
    [
      'bench.mjs',
      '--report --out none-of-that-name',
      'There is no bench/results/none-of-that-name.jsonl; measure first',
    ],
    ['bench.mjs', '--report --write', '--write is only for --bars and --axis'],
  ])('%s %s', async (program, words, line) => {
    expect(await refusalOf(`bench/${program}`, words)).toContain(line);
  });

  test.each([
    ['--minutes 0', '--minutes is a number above 0, and not "0"'],
    ['--load 0', '--load is a number above 0, and not "0"'],
    ['--seed abc', '--seed is a whole number from 0 up, and not "abc"'],
    ['--faults kill,drian', 'There is no fault "drian"; there are kill, drain, freeze'],
    ['--write soak.txt', '--write is a file .md in a folder that is there, and not "soak.txt"'],
    ['--minute 1', "Unknown option '--minute'. See node test/run.mjs soak --help"],
  ])('soak.mjs %s', async (words, line) => {
    expect(await refusalOf('test/soak/soak.mjs', words)).toContain(line);
  });

  test.each([
    ['bench/profile.mjs', '--target ours-redis'],
    ['test/soak/soak.mjs', ''],
  ])('%s without redis-server', async (program, words) => {
    const line = 'redis-server does not start; install it (Debian: apt-get install redis)';
    expect(await refusalOf(program, words, { PATH: folder })).toContain(line);
  });

  test('profile.mjs without a build', async () => {
    const line = 'There is no /none/main.js; build it first: npm run build';
    expect(await refusalOf('bench/profile.mjs', '', { BENCH_OURS: '/none/main.js' })).toContain(line);
  });
});

test.each(['bench', 'peers', 'profile', 'worst'])(
  '%s.mjs --help says how it is called and what it does',
  async (name) => {
    const { code, stdout } = await run(`bench/${name}.mjs`, '--help');
    expect(stdout).toMatch(new RegExp(`^node bench/${name}\\.mjs[^\\n]*\\n(.*\\n)?[A-Z]`));
    expect(code).toBe(0);
  },
);
