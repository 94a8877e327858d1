import { readdirSync, readFileSync } from 'node:fs';

/** The state of a process as the kernel reports it. */
export interface ProcessState {
  readonly pid: number;
  /** Start time in clock ticks since the boot: the kernel reuses pids. */
  readonly startTicks: number;
  /** The process group; it has the pid of the process that created it. */
  readonly group: number;
  /** A zombie runs no code and holds nothing; it waits for its parent to reap it. */
  readonly isZombie: boolean;
  /** The processor time of the process itself, in milliseconds. */
  readonly cpuMs: number;
}

/** All numbers in /proc count in hundredths of a second (USER_HZ), whatever the clock of the kernel is. */
const ticksPerSecond = 100;

/** Returns the process with this pid, also a zombie; undefined if there is none. Throws if /proc cannot be read. */
export function readProcess(pid: number): ProcessState | undefined {
  try {
    // For UTF-8, Node.js reads into memory of its own. For other encodings, it allocates 64 KiB for a file in /proc.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The line is "pid (name) state ppid group session …", and the name itself may hold blanks and parentheses. Field
    // 22 is the start time; 14 and 15 are the processor time in user and kernel mode (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 20);
    const [state, , group] = fields;
    return {
      pid,
      startTicks: Number(fields[19]),
      group: Number(group),
      isZombie: state === 'Z' || state === 'X',
      cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond,
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // the process has ended, perhaps between opening and reading
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

/** Lists all visible processes. Throws if /proc cannot be read. Some 50 µs for each. */
export const listProcesses = (): ProcessState[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((found) => found !== undefined);

/** Whether a process runs whose parent is another one. A zombie does not, but only /proc tells it from others. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it has become another user
  }
  try {
    return readProcess(pid)?.isZombie !== true;
  } catch {
    return true; // expected: no /proc
  }
}
