import { spawnSync } from 'node:child_process';
import { closeSync, constants, ftruncateSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { openStoreFile } from './own-files.ts';
import { StoreDirectoryError } from './store-directory-error.ts';

/** The process that holds a lock, as it wrote itself into the lock file. */
interface Holder {
  readonly pid: number;
  readonly host: string;
}

/** The exit status of `flock -n` if another process holds the lock. */
const heldByAnother = 1;

/**
 * Locks a file for this process, and returns the function that releases the lock. Throws `StoreDirectoryError` if
 * another process holds the lock.
 *
 * Node.js has no function for file locks. The program `flock` of util-linux or BusyBox locks the open file, which it
 * inherits, and the lock stays with the file of this process when the program has ended. The kernel releases the lock
 * when this process ends, however it ends, and the lock works between containers too. Without that program, the file
 * itself is the lock, and a lock of a process of this host that has ended is ignored.
 */
export function lockFile(path: string): () => void {
  const { O_CREAT, O_RDWR } = constants;
  const file = openStoreFile(path, O_CREAT | O_RDWR, 0o600);
  try {
    const flock = spawnSync('flock', ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'pipe', file] });
    const holder = readHolder(file);
    if (flock.status === heldByAnother && flock.stderr.length === 0) throw inUse(path, holder);
    const isKernelLock = flock.status === 0;
    if (!isKernelLock && holder !== undefined && mayRun(holder)) throw inUse(path, holder);
    ftruncateSync(file);
    writeSync(file, JSON.stringify({ pid: process.pid, host: hostname() } satisfies Holder), 0);
    return () => {
      // A removed file could be locked by a process that has just opened it, beside a new one.
      if (isKernelLock) ftruncateSync(file);
      else unlinkSync(path);
      closeSync(file);
    };
  } catch (cause) {
    closeSync(file);
    throw cause;
  }
}

function readHolder(file: number): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return undefined; // no process has written itself into the file, or it was interrupted
  }
}

/** True unless the process is known to have ended. A process of another host may run. */
function mayRun({ pid, host }: Holder): boolean {
  if (host !== hostname()) return true;
  if (pid === process.pid) return false; // an earlier process of a container, which had the same id
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function inUse(path: string, holder: Holder | undefined): StoreDirectoryError {
  const who = holder === undefined ? 'Another process' : `Process ${holder.pid} on ${holder.host}`;
  return new StoreDirectoryError(
    `${who} uses this directory (${path} is locked). A directory belongs to one gateway at a time. ` +
      'Stop that process, use another directory, or share sessions between gateways with Redis.',
  );
}
