import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { open } from '../support/http-client.ts';

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
   * to run but other processes had the processors; `rawP99Ms` is with it.
   */
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly rawP99Ms: number;
  readonly probes: number;
}

/** Watches a gateway's memory and `/healthz` until `work` is done. Passes what that rejects with. */
export async function watch(gateway: { pid: number; baseUrl: string }, work: Promise<unknown>): Promise<Seen> {
  const before = rssMiB(gateway.pid);
  const times: number[] = [];
  const rawTimes: number[] = [];
  let most = before;
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => undefined);
  do {
    const waitedBefore = [waitedMs(gateway.pid), waitedMs(process.pid)] as const;
    const sentAt = performance.now();
    await (await open(`${gateway.baseUrl}/healthz`, { method: 'GET' })).answer();
    const rawMs = performance.now() - sentAt;
    // The longer one of the two: both can have waited at the same time, and what is not sure counts against the gateway.
    const waited = Math.max(waitedMs(gateway.pid) - waitedBefore[0], waitedMs(process.pid) - waitedBefore[1]);
    rawTimes.push(rawMs);
    times.push(Math.max(0, rawMs - waited));
    most = Math.max(most, rssMiB(gateway.pid));
    await delay(10);
  } while (!isDone);
  await done;
  times.sort((a, b) => a - b);
  rawTimes.sort((a, b) => a - b);
  const p99 = Math.ceil(times.length * 0.99) - 1;
  return {
    grownMiB: Math.round(most - before),
    p99Ms: Math.round(times[p99] ?? 0),
    maxMs: Math.round(times.at(-1) ?? 0),
    rawP99Ms: Math.round(rawTimes[p99] ?? 0),
    probes: times.length,
  };
}

/** How long the main thread of a process was ready to run and did not (Documentation/scheduler/sched-stats.rst). */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0; // a kernel without it
  }
}

/** Measures again if the first time was over the bound: other processes share the machine. */
export async function measureTwice<T>(measure: () => Promise<T>, isFine: (seen: T) => boolean): Promise<T> {
  const seen = await measure();
  return isFine(seen) ? seen : measure();
}

/** For the reports of the full sizes. */
export const report = (what: string, seen: object): void =>
  void process.stderr.write(`${what}: ${JSON.stringify(seen)}\n`);
