import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';

const folder = mkdtempSync(join(tmpdir(), 'gangway-command-'));
const results = `${root}bench/results/command-test-${process.pid}.jsonl`;
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(results, { force: true });
});

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
    ['bench.mjs', '--rounds -1', '--rounds is a whole number from 1 to 50, and not "-1"'],
    ['bench.mjs', '--warm abc', '--warm is a whole number from 0 up, and not "abc"'],
    ['bench.mjs', '--round 1', "Unknown option '--round'. See node bench/bench.mjs --help"],
    ['bench.mjs', '--target our', 'There is no target our; see node bench/bench.mjs --list'],
    ['bench.mjs', '--resume --out none-of-that-name', 'There is no run in bench/results/none-of-that-name.jsonl'],
    ['curves.mjs', '--rounds abc', '--rounds is a whole number from 1 to 50, and not "abc"'],
    [
      'curves.mjs',
      '--axis evnts',
      'There is no axis evnts; there are sessions, among-sessions, payload, events, instances',
    ],
    ['scale.mjs', '--sessions 0', '--sessions is a whole number from 100 up, and not "0"'],
    ['scale.mjs', '--masters 2', '--masters is 1, or 3 and more'],
    ['peers.mjs', '--part all', '--part is figures or trials, and not "all"'],
    ['peers.mjs', '--target our', 'There is no target our; there are'],
    ['profile.mjs', '--seconds 0', '--seconds is a number above 0, and not "0"'],
    ['profile.mjs', '--target our', 'There is no target our; see node bench/bench.mjs --list'],
    ['report.mjs', 'none-of-that-name', 'There is no bench/results/none-of-that-name.jsonl; measure first'],
    ['report.mjs', 'package.json', 'There is no JSON in line 1 of package.json'],
  ])('%s %s', async (program, words, line) => {
    expect(await refusalOf(`bench/${program}`, words)).toContain(line);
  });

  test.each([
    ['--minutes 0', '--minutes is a number above 0, and not "0"'],
    ['--load -1', '--load is a number above 0, and not "-1"'],
    ['--seed abc', '--seed is a whole number from 0 up, and not "abc"'],
    ['--faults kill,drian', 'There is no fault "drian"; there are kill, drain, freeze'],
    ['--write soak.txt', '--write is a file .md in a folder that is there, and not "soak.txt"'],
    ['--minute 1', "Unknown option '--minute'. See node test/run.mjs soak --help"],
  ])('soak.mjs %s', async (words, line) => {
    expect(await refusalOf('test/soak/soak.mjs', words)).toContain(line);
  });

  test.each([
    ['bench/scale.mjs', ''],
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

test.each(['bench', 'curves', 'peers', 'profile', 'report', 'scale', 'worst'])(
  '%s.mjs --help says how it is called and what it does',
  async (name) => {
    const { code, stdout } = await run(`bench/${name}.mjs`, '--help');
    expect(stdout).toMatch(new RegExp(`^node bench/${name}\\.mjs[^\\n]*\\n(.*\\n)?[A-Z]`));
    expect(code).toBe(0);
  },
);

describe('bench.mjs --resume', () => {
  const out = results.replace(/^.*\/|\.jsonl$/g, '');
  const begun = { machine: {}, node: 'v24.0.0', peers: {}, at: '2026-11-22T00:00:00Z' };
  const cell = { round: 1, scenario: 'echo-1x1-100-string', target: 'ideal', kind: 'echo' };
  const resume = (asked: object | undefined, words = ''): Promise<string> => {
    writeFileSync(results, `${JSON.stringify({ ...begun, asked })}\n${JSON.stringify(cell)}\n`);
    return refusalOf('bench/bench.mjs', `--resume --out ${out} ${words}`);
  };
  const asked = { target: 'ideal', scenario: 'echo-1x1-100-string', rounds: 1 };

  test('does not begin anew where the last run is complete', async () => {
    expect(await resume(asked)).toContain(`${out}.jsonl is complete; begin one without --resume`);
  });

  test('names the arguments of the last run where others are given', async () => {
    expect(await resume(asked, '--rounds 2')).toContain('(--target ideal --scenario echo-1x1-100-string --rounds 1)');
  });

  test('asks for arguments where the last run does not say its own', async () => {
    expect(await resume(undefined)).toContain('does not say what it was asked; give its arguments beside --resume');
    const words = '--target ideal --scenario echo-1x1-100-string --rounds 1';
    expect(await resume(undefined, words)).toContain('is complete');
  });
});

test('report.mjs takes a name as --out gave it', async () => {
  writeFileSync(results, `${JSON.stringify({ machine: {}, node: 'v20.1.2', peers: {}, at: '2026-11-22' })}\n`);
  const { stdout } = await run('bench/report.mjs', results.replace(/^.*\/|\.jsonl$/g, ''));
  expect(stdout).toContain('Node.js 20.1.2');
});

describe('what is published', async () => {
  type Put = (page: string, name: string, text: string, options?: { isReplaced: boolean }) => string;
  const { putBetween } = (await import(`${root}bench/lib/page.mjs`)) as { putBetween: Put };
  const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const table = (...rows: readonly string[]): string => [row('', 'ours', 'ideal'), '|:--|--:|--:|', ...rows].join('\n');
  const page = (text: string): string =>
    `# Page\n\n<!-- part: by a command -->\n\n${text}\n\n<!-- end of part -->\nEnd\n`;
  const full = table(row('a', '1', '2'), row('b', '3', '–'));

  test('gives way to what says as much', () => {
    expect(putBetween(page(full), 'part', full.replace('1', '7'))).toBe(page(full.replace('1', '7')));
  });

  test.each([
    ['rows', full.replace(/\n.*$/, ''), '2 table rows in place of 3'],
    ['values', full.replace('3', 'not measured'), '4 values in place of 5'],
  ])('is not lost where %s are missing, unless told so', (_, less, line) => {
    expect(() => putBetween(page(full), 'part', less)).toThrow(line);
    expect(putBetween(page(full), 'part', less, { isReplaced: true })).toBe(page(less));
  });
});
