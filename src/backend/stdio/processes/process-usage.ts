import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate as otherWork } from 'node:timers/promises';
import { type ProcessState, readProcess } from './process-identity.ts';

/** So many processes are read in one go, in about a millisecond. */
const processesPerTurn = 50;

/** What one process of a group uses. */
export interface ProcessUsage {
  readonly group: number;
  /** Names the process; its pid alone is given away again. */
  readonly identity: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
}

/** The processes of these groups that there are now, looked up in small steps. Throws where /proc cannot be read. */
export async function* processesOf(groups: Pick<ReadonlySet<number>, 'has'>): AsyncGenerator<ProcessState> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const [index, pid] of pids.entries()) {
    if (index % processesPerTurn === processesPerTurn - 1) await otherWork();
    const found = readProcess(Number(pid));
    if (found !== undefined && groups.has(found.group)) yield found;
  }
}

/** What the processes of these groups use now; nothing where there is no /proc to tell it (macOS). */
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
 * Resident pages of a process, those that it shares counted in full (proc(5), VmRSS). 0 for one that has ended meanwhile,
 * or is a zombie. Throws where /proc cannot be read.
 */
export function residentBytes(pid: number): number {
  try {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return 0;
    throw error;
  }
}
