import { readdirSync, readFileSync } from 'node:fs';

/**
 * Whether all that is left of a process group are zombies: they run no code and hold nothing, but are signalled without
 * an error for as long as nobody waits for them, which is for ever if PID 1 of the container does not reap.
 * Looks at every process, so it is for the rare group that does not vanish. False where it cannot be told.
 */
export function isOnlyZombies(groupPid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(readState)
      .every((found) => found?.group !== groupPid || found.state === 'Z' || found.state === 'X');
  } catch {
    return false; // no /proc, or no descriptor left to read it: the group counts as living, and is killed
  }
}

function readState(pid: string): { readonly state: string | undefined; readonly group: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (name) state ppid group …", and the name may hold blanks and parentheses itself (proc(5))
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return { state, group: Number(group) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined; // it vanished between the listing and the reading
    throw error;
  }
}
