import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate as otherWork } from 'node:timers/promises';
import { type ProcessState, readProcess } from './process-state.ts';

/** So many processes are read at once, in about a millisecond. */
const processesPerTurn = 50;

/** Memory and processor time of one process of a group. */
export interface ProcessUsage {
  readonly group: number;
  /** Identifies the process; the kernel reuses its pid alone. */
  readonly identity: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
}

/** Yields the current processes of these groups, looked up in small steps. Throws if /proc cannot be read. */
export async function* processesOf(groups: Pick<ReadonlySet<number>, 'has'>): AsyncGenerator<ProcessState> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const [index, pid] of pids.entries()) {
    if (index % processesPerTurn === processesPerTurn - 1) await otherWork();
    const found = readProcess(Number(pid));
    if (found !== undefined && groups.has(found.group)) yield found;
  }
}

/** Returns the current use of the processes of these groups; nothing without /proc (macOS). */
export async function usageOf(groups: Pick<ReadonlySet<number>, 'has'>): Promise<readonly ProcessUsage[]> {
  const usage: ProcessUsage[] = [];
  try {
    for await (const { pid, startTicks, group, cpuMs } of processesOf(groups)) {
      usage.push({ group, identity: `${pid} ${startTicks}`, residentBytes: residentBytes(pid), cpuMs });
    }
  } catch {
    return []; // expected: no /proc
  }
  return usage;
}

/**
 * Returns the resident memory of a process, with shared pages counted in full (proc(5), VmRSS). 0 for a process that
 * has ended meanwhile, or is a zombie. Throws if /proc cannot be read.
 */
export function residentBytes(pid: number): number {
  try {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return 0;
    throw error;
  }
}
