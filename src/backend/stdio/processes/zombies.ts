import { listProcesses } from './process-identity.ts';

/**
 * Whether only zombies are left of a process group. They run no code and hold nothing, but can be signalled without an
 * error until their parent reaps them. In a container whose PID 1 does not reap, that is for ever. Reads every process,
 * so it is for the rare group that does not vanish. False if that cannot be determined.
 */
export function hasOnlyZombies(groupPid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return listProcesses().every(({ group, isZombie }) => group !== groupPid || isZombie);
  } catch {
    return false; // no /proc, or no descriptor left to read it: the group counts as living, and is killed
  }
}
