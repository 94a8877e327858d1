import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';

const exec = promisify(execFile);

describe('peers.mjs --quick, where no peer is installed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-peers-'));
  const out = `peers-test-${process.pid}`;
  const file = `${root}bench/results/${out}.jsonl`;
  const run = async (...args: readonly string[]): Promise<string> => {
    const words = [`${root}bench/peers.mjs`, '--out', out, ...args];
    return (await exec(process.execPath, words, { env: { ...process.env, BENCH_PEERS: folder } })).stdout;
  };
  let output: string;
  beforeAll(async () => {
    output = await run('--quick', '--target', 'ours-files,ideal,tbxark');
  }, 180_000);
  afterAll(() => {
    rmSync(folder, { recursive: true });
    rmSync(file, { force: true });
  });

  const rowOf = (text: string, name: string): readonly string[] =>
    (text.split('\n').find((line) => line.startsWith(`| ${name} |`)) ?? '')
      .split('|')
      .slice(2, -1)
      .map((cell) => cell.trim());

  test('names what is missing, with the command that installs it', () => {
    expect(output).toMatch(/^left out: tbxark; install it: git clone .*\$BENCH_PEERS\/tbxark-mcp-proxy/m);
    expect(output).not.toContain('WRONG');
  });

  /** Each figure of a gateway, by its title. */
  const figuresOf = (text: string, name: string): Readonly<Record<string, string>> => {
    const cells = rowOf(text, name);
    return Object.fromEntries(rowOf(text, 'Gateway').map((title, i) => [title, cells[i] ?? '']));
  };

  test('has each figure of ours', () => {
    const { 'Added median, µs': p50, 'Added 99th percentile, µs': p99, ...others } = figuresOf(output, 'mcp-gangway');
    expect(Object.keys(others)).toHaveLength(6);
    for (const cell of Object.values(others)) expect(cell).toMatch(/^[\d,.]+$/);
    for (const cell of [p50, p99]) expect(cell).toMatch(/^(−?[\d,.]+|–)$/);
  });

  test('tries all that the page says, and ours does it', () => {
    const results = output.split('\n').filter((line) => /^ours-files +\w+ +(yes|no) /.test(line));
    expect(results).toHaveLength(14);
    for (const line of results) expect(line).toMatch(/^ours-files +\w+ +yes /);
    expect(output).toContain('| A cut stream goes on, with the answer | mcp-gangway: 7 of 7 events and the answer |');
  });

  test('prints the same tables again from what is kept', async () => {
    const again = await run('--report');
    expect(rowOf(again, 'mcp-gangway')).toEqual(rowOf(output, 'mcp-gangway'));
  });
});

test('the parser of events takes lines that end with CR LF, as servers in Python write them', async () => {
  const { createSseParser } = (await import(`${root}bench/lib/sse-parser.mjs`)) as {
    createSseParser: (onData: (text: string) => void) => (chunk: Buffer) => void;
  };
  const got: string[] = [];
  const take = createSseParser((text) => got.push(text));
  for (const part of ['event: message\r\nda', 'ta: {"a":1}\r', '\n\r\nevent: message\r\ndata: {"b":2}\r\n\r\n'])
    take(Buffer.from(part));
  expect(got).toEqual(['{"a":1}', '{"b":2}']);
});
