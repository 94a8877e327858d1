import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Waiting, waitFor } from './wait-for.ts';

/** A process from the process table. `started` distinguishes two processes with the same pid. */
export interface ProcessInfo {
  readonly pid: number;
  readonly ppid: number;
  readonly started: string;
  readonly command: string;
  /** Ended, and only waiting for its parent to notice: it runs no code and holds no pipe. */
  readonly isZombie: boolean;
}

/** What tells one process from another, and who started it. */
type ProcessState = Omit<ProcessInfo, 'command'>;

const isLinux = process.platform === 'linux';

/** All processes, from /proc on Linux and from `ps` elsewhere. */
export async function listProcesses(): Promise<ProcessInfo[]> {
  return isLinux ? listFromProc().flatMap(withCommand) : listFromPs();
}

/** The gateway's own process that starts the servers. It is not one of them. */
const isStarter = ({ command }: ProcessInfo): boolean =>
  /^mcp server starter|starter-process\.cjs( \d+)*$/.test(command);

/** The process that starts the servers of the gateway with this pid; undefined while there is none. */
export const findStarter = async (pid: number): Promise<ProcessInfo | undefined> =>
  (await listProcesses()).find((found) => found.ppid === pid && !found.isZombie && isStarter(found));

/**
 * The living descendants of a process, without the process itself and the starter. A descendant whose parent has ended belongs to
 * another process by then. So take this list before the end, and then wait with `waitUntilGone`.
 */
export async function descendantsOf(pid: number): Promise<ProcessInfo[]> {
  const found = isLinux
    ? descendantsIn(listFromProc(), pid).flatMap(withCommand)
    : descendantsIn(await listFromPs(), pid);
  return found.filter((each) => !isStarter(each));
}

function descendantsIn<T extends ProcessState>(processes: readonly T[], pid: number): T[] {
  const alive = processes.filter(({ isZombie }) => !isZombie);
  const found: T[] = [];
  let parents = new Set([pid]);
  while (parents.size > 0) {
    const children = alive.filter(({ ppid }) => parents.has(ppid));
    found.push(...children);
    parents = new Set(children.map((child) => child.pid));
  }
  return found;
}

/** Those of `processes` that still live. */
export async function stillAlive(processes: readonly ProcessInfo[]): Promise<ProcessInfo[]> {
  const all = isLinux ? processes.flatMap(({ pid }) => readState(pid) ?? []) : await listFromPs();
  return processes.filter(({ pid, started }) =>
    all.some((now) => now.pid === pid && now.started === started && !now.isZombie),
  );
}

/** Resolves when `pid` has exactly `count` living descendants (or as many as `count` accepts), with them. */
export async function waitForDescendants(
  of: number | { descendants(): Promise<ProcessInfo[]> },
  count: number | ((count: number) => boolean),
  waiting: Waiting = {},
): Promise<ProcessInfo[]> {
  const isEnough = typeof count === 'number' ? (found: number) => found === count : count;
  return waitFor(
    async () => {
      const found = await (typeof of === 'number' ? descendantsOf(of) : of.descendants());
      return isEnough(found.length) ? found : undefined;
    },
    { what: `${typeof count === 'number' ? count : 'enough'} descendants`, intervalMs: 20, ...waiting },
  );
}

/** Resolves when none of `processes` lives any more; rejects at the deadline with the ones that do. */
export async function waitUntilGone(processes: readonly ProcessInfo[], { deadlineMs = 10_000 }: Waiting = {}) {
  let left = [...processes];
  const areGone = async () => {
    left = await stillAlive(left);
    return left.length === 0;
  };
  await waitFor(areGone, { deadlineMs, what: 'the processes to end', intervalMs: 20 }).catch((cause: Error) => {
    const names = left.map(({ pid, command }) => `${pid} ${command}`).join('; ');
    throw new Error(`After ${deadlineMs} ms these processes still live: ${names}`, { cause });
  });
}

/**
 * Tests poll the table. With a promise for each file, a listing takes 23 ms of processor time where 120 processes run, and
 * 2 ms without.
 */
function listFromProc(): ProcessState[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readState(Number(name)) ?? []) : []));
}

function readState(pid: number): ProcessState | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // "pid (name) state ppid …", and the name may hold blanks and parentheses itself (proc(5)); field 22 is the start
  // time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const isZombie = fields[0] === 'Z' || fields[0] === 'X';
  return { pid, ppid: Number(fields[1]), started: fields[19] ?? '', isZombie };
}

/** With its command, or nothing if it has ended since. */
function withCommand(found: ProcessState): ProcessInfo | [] {
  const words = readProc(`/proc/${found.pid}/cmdline`);
  return words === undefined ? [] : { ...found, command: words.replaceAll('\0', ' ').trim() };
}

/** A file of /proc, or undefined if its process has ended. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ESRCH';
}

async function listFromPs(): Promise<ProcessInfo[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat=,lstart=,command=']);
  return stdout.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line);
    if (match === null) return [];
    const [, pid, ppid, state = '', started = '', command = ''] = match;
    return [{ pid: Number(pid), ppid: Number(ppid), started, command, isZombie: state.startsWith('Z') }];
  });
}
