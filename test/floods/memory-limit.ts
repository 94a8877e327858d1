import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { waitFor } from '../support/wait-for.ts';

/** A control group whose processes have a limited amount of memory together, as a container has. */
export interface MemoryLimit {
  /** The words before a command so that it runs in the group. */
  readonly inside: readonly string[];
  /** The words before a command so that it leaves the group, before it uses memory: that would stay with the group. */
  readonly outside: readonly string[];
  /** The highest use so far, in MiB: memory of processes, of their sockets, and pages of files. */
  peakMiB(): number;
  remove(): Promise<unknown>;
}

const roots = [
  { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' },
  { root: '/sys/fs/cgroup', limit: 'memory.max', peak: 'memory.peak' },
];

/** Creates a group. Undefined where none can be made: that takes root, and a mounted hierarchy (cgroups(7)). */
export function limitMemory(mebibytes: number): MemoryLimit | undefined {
  const found = roots.find(({ root }) => existsSync(`${root}/cgroup.procs`));
  if (found === undefined) return undefined;
  const folder = `${found.root}/gangway-floods-${process.pid}`;
  try {
    mkdirSync(folder);
    writeFileSync(`${folder}/${found.limit}`, `${mebibytes * 2 ** 20}`);
  } catch {
    if (existsSync(folder)) rmdirSync(folder);
    return undefined;
  }
  return {
    inside: runningIn(folder),
    outside: runningIn(found.root),
    peakMiB: () => Number(readFileSync(`${folder}/${found.peak}`, 'utf8')) / 2 ** 20,
    remove: () => waitFor(() => isRemoved(folder), { what: `the processes in ${folder} to end` }),
  };
}

const runningIn = (folder: string): string[] => [
  '/bin/sh',
  '-c',
  `echo $$ > ${folder}/cgroup.procs && exec "$@"`,
  'sh',
];

/** The highest resident memory of a process since the last call, in MiB; see proc(5), `clear_refs`. */
export function takePeakRssMiB(pid: number): number {
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return peak;
}

/** A group can be removed once it has no process. The starter ends a moment after its gateway. */
function isRemoved(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EBUSY') throw cause;
    return false;
  }
}
