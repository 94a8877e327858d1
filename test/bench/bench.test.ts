import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';

const exec = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'gangway-bench-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What bench.mjs, or another program of bench/, prints; rejects if it fails. */
const runProgram = async (program: string, ...args: string[]): Promise<string> =>
  (await exec(process.execPath, [`${root}bench/${program}`, ...args], { maxBuffer: 1e7 })).stdout;
const run = (...args: string[]): Promise<string> => runProgram('bench.mjs', ...args);

/** The report of a file of results. */
const report = (file: string, ...args: string[]): Promise<string> => run('--report', '--out', file, ...args);

/** A module of the reports. */
const load = (name: string): Promise<unknown> => import(`${root}bench/report/${name}.mjs`);

/** A file of results: runs, each a list of cells. */
function resultsOf(...runs: readonly (readonly object[])[]): string {
  const file = join(folder, `${Math.random()}.jsonl`);
  const machine = {
    machine: { cpus: 2, cpu: 'test', gib: 4, kernel: '6' },
    node: 'v24.0.0',
    backend: 'C',
    peers: {},
    at: '2026-11-22T00:00:00Z',
  };
  const rows = runs.flatMap((cells) => [machine, { round: 1, load: 0, busyShare: 0, stealShare: 0 }, ...cells]);
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return file;
}

/** A cell of echo calls. */
const echo = (target: string, answers: number, more: object = {}): object => ({
  ...{ round: 1, target, scenario: 'echo-16x1-64k-string', kind: 'echo', answers, seconds: 1 },
  ...{ latency: { p50: 1, p99: 2 }, gatewayCpu: 0.5, residentKib: 102_400, faults: {} },
  ...more,
});

const rowOf = (text: string, name: string): string => text.split('\n').find((line) => line.includes(name)) ?? '';

describe('bench.mjs --quick', () => {
  let output: string;
  beforeAll(async () => {
    output = await run('--quick');
  }, 120_000);

  test('measures every kind of scenario, and all answers are right', () => {
    expect(output).not.toContain('WRONG');
    expect(output).not.toContain('**Deviations**');
    for (const scenario of [
      ...['echo-1x1-100-string', 'echo-16x1-64k-unicode', 'modern-16x8-100-string', 'modern-stream-16'],
      ...['sessions-4', 'session-per-call', 'paced-16x4-100-words'],
    ])
      expect(rowOf(output, `| ${scenario} | ours |`)).toMatch(/\| [\d.,]+ \(\d+\.\d\d\) \|/);
    // With five sessions, the memory of the ideal can shrink.
    expect(rowOf(output, '| idle | ours |')).toMatch(/\| [\d.,]+( \(\d+\.\d\d\))? \|$/);
  });

  test('leaves results that the report and the bars can read', async () => {
    expect(await report('quick')).toContain('Gateway CPU per event, µs');
    const bars = await report('quick', '--bars');
    expect(rowOf(bars, 'echo 64 KiB, 16x1, unicode')).toMatch(/\| no bar \| \d/);
    expect(rowOf(bars, 'time from process start')).toContain('| not measured |');
  });
});

describe('bench.mjs --report', () => {
  test('takes the newest run of each part, with ratios of that run', async () => {
    const file = resultsOf(
      [echo('ours', 100), echo('ours-redis', 90), echo('ideal', 200)],
      [echo('ours', 120), echo('ideal', 100)],
    );
    const text = await report(file);
    expect(rowOf(text, '| ours |')).toContain('| 120 (1.20) |');
    expect(rowOf(text, '| ours-redis |')).toContain('| 90.0 (0.45) |');
    expect(rowOf(text, '| ideal |')).toContain('| 100 |');
  });

  test('counts a cell that was run again in its round once, as the last time', async () => {
    const file = resultsOf([echo('ours', 100), echo('ours', 300), echo('ideal', 200)]);
    expect(rowOf(await report(file), '| ours |')).toContain('| 300 (1.50) |');
  });

  test('says on which rounds the machine was not quiet', async () => {
    const file = resultsOf([{ round: 2, load: 3, busyShare: 0.5, stealShare: 0 }, echo('ours', 1)]);
    expect(await report(file)).toContain('1 of 2 rounds began on a machine that was not quiet');
  });

  test('says the processor time of a call, of the gateway and of Redis', async () => {
    const text = await report(resultsOf([echo('ours-redis', 100, { gatewayCpu: 0.5, redisCpu: 0.1 })]));
    expect(rowOf(text, 'Gateway CPU, µs')).toContain('| Gateway CPU, µs | Redis CPU, µs |');
    expect(rowOf(text, '| ours-redis |')).toContain('| 5,000 | 1,000 |');
  });

  test('tells faults with how often they were', async () => {
    const cell = echo('ours', 1, { faults: { 'wrong tag': 3 } });
    const file = resultsOf([cell, { ...cell, round: 2 }]);
    expect(rowOf(await report(file), 'wrong tag')).toBe('| ours | echo-16x1-64k-string | wrong tag | 6 |');
  });
});

describe('bench.mjs --report --bars', () => {
  const rounds = (target: string, answers: number, scenario = 'echo-16x1-64k-string'): object[] =>
    [1, 2, 3, 4, 5].map((round) => echo(target, answers, { round, scenario }));
  const bar = 'echo 64 KiB, 16x1, string';

  test('a bar is met from its number on', async () => {
    const [met, missed] = [85, 84].map((rate) => resultsOf([...rounds('ours', rate), ...rounds('ideal', 100)]));
    expect(rowOf(await report(`${met}`, '--bars'), bar)).toContain('| ≥ 0.85 | 0.850 | yes |');
    expect(rowOf(await report(`${missed}`, '--bars'), bar)).toContain('| ≥ 0.85 | 0.840 | **no** |');
  });

  test('of several payloads the worst counts, and none may be missing', async () => {
    const kinds = ['string', 'words', 'tokens', 'escapes'];
    const cells = kinds.map((kind, i) => [
      ...rounds('ours', 100 - i * 10, `echo-16x1-100-${kind}`),
      ...rounds('ideal', 100, `echo-16x1-100-${kind}`),
    ]);
    const name = 'echo 100 B, 16x1: calls per second, ratio to ideal';
    expect(rowOf(await report(resultsOf(cells.flat()), '--bars'), name)).toContain(
      '| 0.700 (echo-16x1-100-escapes) | **no** |',
    );
    expect(rowOf(await report(resultsOf(cells.slice(1).flat()), '--bars'), name)).toContain('not measured');
  });

  test('the memory of an idle session counts from 1,000 sessions to 2,000', async () => {
    const steps = (perSession: number): object[] =>
      [1, 1_000, 2_000].map((sessions) => ({
        sessions,
        residentKib: (sessions < 1_000 ? 1 : 90_000) + sessions * perSession,
      }));
    const cell = (target: string, perSession: number, round: number): object => ({
      ...{ round, target, scenario: 'idle-many', kind: 'idle', answers: 1, steps: steps(perSession) },
    });
    const cells = [1, 2, 3, 4, 5].flatMap((round) => [cell('ours-many', 48, round), cell('ideal', 30, round)]);
    const row = rowOf(await report(resultsOf(cells), '--bars'), 'from 1,000 to 2,000 sessions');
    expect(row).toContain('| ≤ 1.6 | 1.60 | yes |');
  });

  test('each bar names a command that measures it', async () => {
    const file = resultsOf([echo('ours', 1)]);
    const commands = [...(await report(file, '--bars')).matchAll(/`node bench\/bench\.mjs ([^`]*)`/g)];
    expect(commands.length).toBeGreaterThan(10);
    for (const [, words = ''] of commands) {
      const args = words.replaceAll("'", '').split(' ');
      expect(await run('--list', ...args)).not.toMatch(/^0 cells/m);
    }
  }, 60_000);
});

test('worst.mjs leaves rows from which both of its bars are read', async () => {
  const out = `worst-test-${process.pid}`;
  const file = `${root}bench/results/${out}.jsonl`;
  try {
    await runProgram('worst.mjs', '--seconds', '0.5', '--rounds', '1', '--out', out);
    const bars = await report(file, '--bars');
    expect(rowOf(bars, 'CPU per byte of the worst input')).toMatch(/\| ≤ 1\.5 \| \d+\.\d+ \| .*1 of 5 rounds/);
    expect(rowOf(bars, 'longest step of the event loop')).toMatch(/\| ≤ 20 ms \| \d/);
  } finally {
    rmSync(file, { force: true });
  }
}, 60_000);

describe('payloads', async () => {
  interface Payload {
    readonly after: Buffer;
    readonly expected: string;
    readonly marker: (tag: string) => string;
  }
  const { createPayload } = (await import(`${root}bench/load/payloads.mjs`)) as {
    createPayload: (kind: string, bytes: number) => Payload;
  };
  const kinds = ['string', 'words', 'code', 'json', 'unicode', 'tokens', 'escapes'];

  test.each(kinds)('%s: JSON as JSON.stringify writes it, of about the size that was asked for', (kind) => {
    const { after } = createPayload(kind, 65_536);
    const call = `{"params":{"arguments":{"text":"${after}`;
    expect(JSON.stringify(JSON.parse(call))).toBe(call);
    expect(after.length).toBeGreaterThan(65_500);
    expect(after.length).toBeLessThan(66_500);
  });

  test.each(['words', 'code', 'json'])('%s has line breaks and quotes', (kind) => {
    expect(createPayload(kind, 4_096).expected).toMatch(/\\n.*\\"|\\".*\\n/);
  });

  test('unicode has characters of two, three and four bytes, which are expected byte by byte', () => {
    const { after, expected } = createPayload('unicode', 4_096);
    expect(after.toString()).toMatch(/ö.*日.*\u{1f680}|\u{1f680}/u);
    expect(after.toString('latin1').startsWith(expected)).toBe(true);
  });
});

describe('bench.mjs --list', () => {
  test('leaves out what says nothing', async () => {
    const text = await run('--list');
    const targetsOf = (scenario: string): string[] =>
      (text.split('\n')[text.split('\n').indexOf(scenario) + 1] ?? '').trim().split(' ');
    expect(targetsOf('stream-16')).toEqual(
      expect.arrayContaining(['ours', 'ours-redis', 'ours-on-modern', 'ours-other', 'mcp-proxy']),
    );
    expect(targetsOf('modern-stream-16')).toEqual(expect.arrayContaining(['ours', 'ours-http', 'ours-translated']));
    expect(targetsOf('modern-stream-16')).not.toEqual(expect.arrayContaining(['ours-redis']));
    expect(targetsOf('hibernated')).toEqual(['ours-hibernate']);
  });
});

describe('bench.mjs --axis', () => {
  test('an axis is measured, and its lines have slopes', async () => {
    const text = await run('--quick', '--axis', 'payload');
    expect(text).not.toContain('WRONG');
    expect(rowOf(text, '| ours, one string |')).toMatch(/^\| ours, one string (\| [\d.,]+ ){3}\| -?\d\.\d\d \|$/);
  }, 120_000);

  test('the slope is that of the cost of a unit at the large end', async () => {
    const { slopeOf } = (await load('curves')) as { slopeOf: (points: number[][]) => number | undefined };
    expect(
      slopeOf([
        [1, 1_000],
        [10, 7],
        [100, 7],
        [1_000, 7],
      ]),
    ).toBeCloseTo(0);
    expect(
      slopeOf([
        [10, 3],
        [20, 6],
        [40, 12],
      ]),
    ).toBeCloseTo(1);
    expect(slopeOf([[10, 3]])).toBeUndefined();
  });
});
