import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * What keeps two processes apart that had the same pid, one after the other: the number alone is given away again.
 * Valid within one boot and one pid namespace, see `Place`.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it was started, in clock ticks since the boot. Stays the same when the process executes another program. */
  readonly startTicks: number;
}

/** A process as the kernel tells of it. */
export interface ProcessState extends ProcessIdentity {
  /** The process group and the session; both bear the pid of the process that made them. */
  readonly group: number;
  readonly session: number;
  /** It runs no code and holds nothing; it only waits for its parent to notice. */
  readonly isZombie: boolean;
  /** The processor time that it has used itself, in milliseconds. */
  readonly cpuMs: number;
}

/** Where a pid and a start time mean anything. Containers on one host have the boot in common, but not the numbers. */
export interface ProcessNamespace {
  readonly bootId: string;
  readonly pidNamespace: string;
}

/** All numbers in /proc count in hundredths of a second (USER_HZ), whatever the clock of the kernel is. */
const ticksPerSecond = 100;

/**
 * This process and where it is. Undefined where there is no /proc to tell it (macOS): nothing that needs it can be done.
 */
export function ownIdentity(): (ProcessIdentity & ProcessNamespace) | undefined {
  try {
    const own = readProcess(process.pid);
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    return own && { pid: own.pid, startTicks: own.startTicks, bootId, pidNamespace: readlinkSync('/proc/self/ns/pid') };
  } catch {
    return undefined; // expected: no /proc, or a sandbox that hides these files
  }
}

/** The process of this pid, a zombie too; undefined if there is none. Throws where /proc cannot be read. */
export function readProcess(pid: number): ProcessState | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (name) state ppid group session …", and the name may hold blanks and parentheses itself; field 22 is the
    // start time, 14 and 15 are the processor time in and below the program (proc(5))
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
    if (code === 'ENOENT' || code === 'ESRCH') return undefined; // it has ended, perhaps between opening and reading
    throw error;
  }
}

/** All processes that can be seen. Throws where /proc cannot be read. Some 50 µs for each. */
export const listProcesses = (): ProcessState[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((found) => found !== undefined);

/** Now, on the clock of `startTicks`. */
export const nowTicks = (): number =>
  Math.floor(Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * ticksPerSecond);

/** Whether it is the same process. */
export const isSameProcess = (one: ProcessIdentity, other: ProcessIdentity | undefined): boolean =>
  one.pid === other?.pid && one.startTicks === other.startTicks;
