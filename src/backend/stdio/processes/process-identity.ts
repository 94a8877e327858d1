import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Distinguishes two processes that had the same pid, one after the other: the kernel reuses pids. Valid within one boot
 * and one pid namespace, see `ProcessNamespace`.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since the boot. Stays the same when the process executes another program. */
  readonly startTicks: number;
}

/** The state of a process as the kernel reports it. */
export interface ProcessState extends ProcessIdentity {
  /** The process group and the session; each has the pid of the process that created it. */
  readonly group: number;
  readonly session: number;
  /** A zombie runs no code and holds nothing; it waits for its parent to reap it. */
  readonly isZombie: boolean;
  /** The processor time of the process itself, in milliseconds. */
  readonly cpuMs: number;
}

/** The scope in which a pid and a start time are valid. Containers on one host share the boot, but not the pids. */
export interface ProcessNamespace {
  readonly bootId: string;
  readonly pidNamespace: string;
}

/** All numbers in /proc count in hundredths of a second (USER_HZ), whatever the clock of the kernel is. */
const ticksPerSecond = 100;

/** Returns this process and its scope. Undefined without /proc (macOS): features that need it are not available. */
export function ownIdentity(): (ProcessIdentity & ProcessNamespace) | undefined {
  try {
    const own = readProcess(process.pid);
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return own && { pid: own.pid, startTicks: own.startTicks, bootId, pidNamespace: readlinkSync('/proc/self/ns/pid') };
  } catch {
    return undefined; // expected: no /proc, or a sandbox that hides these files
  }
}

/** Returns the process with this pid, also a zombie; undefined if there is none. Throws if /proc cannot be read. */
export function readProcess(pid: number): ProcessState | undefined {
  try {
    // For UTF-8, Node.js reads into memory of its own. For other encodings, it allocates 64 KiB for a file in /proc.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The line is "pid (name) state ppid group session …", and the name itself may hold blanks and parentheses. Field
    // 22 is the start time; 14 and 15 are the processor time in user and kernel mode (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 20);
    const [state, , group, session] = fields;
    return {
      pid,
      startTicks: Number(fields[19]),
      group: Number(group),
      session: Number(session),
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

/** The current time on the clock of `startTicks`. */
export const nowTicks = (): number =>
  Math.floor(Number.parseFloat(readFileSync('/proc/uptime', 'utf8')) * ticksPerSecond);

export const isSameProcess = (one: ProcessIdentity, other: ProcessIdentity | undefined): boolean =>
  one.pid === other?.pid && one.startTicks === other.startTicks;
