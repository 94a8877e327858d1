import { listProcesses } from './process-identity.ts';

/**
 * Whether all that is left of a process group are zombies: they run no code and hold nothing, but are signalled without
 * an error for as long as nobody waits for them, which is for ever if PID 1 of the container does not reap.
 * Looks at every process, so it is for the rare group that does not vanish. False where it cannot be told.
 */
export function hasOnlyZombies(groupPid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return listProcesses().every(({ group, isZombie }) => group !== groupPid || isZombie);
  } catch {
    return false; // no /proc, or no descriptor left to read it: the group counts as living, and is killed
  }
}
