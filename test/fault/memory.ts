import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { root } from '../support/gateway.ts';

/** The sizes of the issue instead of those that fit into every run. */
export const isFull = process.env['FAULT_FULL'] === '1';

/** Resident memory of a process in MiB; only where there is a /proc. */
export function rssMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** What was seen of a gateway while something went on. */
export interface Seen {
  /** By how much its memory exceeded what it had at first, at most. */
  readonly grownMiB: number;
  /**
   * How long `/healthz` took, in 99 of 100 probes, and at most, without the time in which gateway and prober were ready
   * to run but other processes had the processors; `rawP99Ms` and `rawMaxMs` are with it.
   */
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly rawP99Ms: number;
  readonly rawMaxMs: number;
  readonly probes: number;
}

/**
 * Watches a gateway's memory and `/healthz` until `work` is done. Passes what that rejects with.
 * @param everyMs how often `/healthz` is asked; if not given, 10 ms after each answer
 */
export async function watch(
  { pid, baseUrl }: { pid: number; baseUrl: string },
  work: Promise<unknown>,
  everyMs?: number,
): Promise<Seen> {
  const before = rssMiB(pid);
  const words = [
    `${root}test/fixtures/prober.mjs`,
    baseUrl,
    `${pid}`,
    ...(everyMs === undefined ? [] : [`${everyMs}`]),
  ];
  const prober = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  let most = before;
  const look = setInterval(() => {
    most = Math.max(most, rssMiB(pid));
  }, 10);
  try {
    await work;
  } finally {
    clearInterval(look);
    prober.stdin.end();
  }
  const { raw, net } = JSON.parse(await text(prober.stdout)) as { raw: number[]; net: number[] };
  return {
    grownMiB: Math.round(most - before),
    p99Ms: Math.round(p99(net)),
    maxMs: Math.round(Math.max(...net)),
    rawP99Ms: Math.round(p99(raw)),
    rawMaxMs: Math.round(Math.max(...raw)),
    probes: net.length,
  };
}

const p99 = (times: readonly number[]): number =>
  [...times].sort((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.POSITIVE_INFINITY;

/** Measures again if the first time was over the bound: other processes share the machine. */
export async function measureTwice<T>(measure: () => Promise<T>, isFine: (seen: T) => boolean): Promise<T> {
  const seen = await measure();
  return isFine(seen) ? seen : measure();
}

/** For the reports of the full sizes. */
export const report = (what: string, seen: object): void =>
  void process.stderr.write(`${what}: ${JSON.stringify(seen)}\n`);
