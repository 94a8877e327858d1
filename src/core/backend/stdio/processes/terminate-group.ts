import { setTimeout as sleep } from 'node:timers/promises';
import { backoff } from '../../../util/timing/backoff.ts';
import { settlesWithin } from '../../../util/timing/within.ts';
import type { ProcessGroup } from './process-group.ts';
import { listProcesses } from './process-state.ts';

/** How long each step of an orderly end may take. */
export interface TerminationGrace {
  /** From the end of its input to SIGTERM (2025-11-25, basic/lifecycle, "Shutdown", stdio). */
  readonly stdinCloseGraceMs?: number | undefined;
  /** From SIGTERM to SIGKILL. */
  readonly terminateGraceMs?: number | undefined;
}

/** The process group to end. */
export interface Termination extends TerminationGrace {
  readonly group: ProcessGroup;
  /** Settles when the leader of the group has exited and was waited for. */
  readonly exited: Promise<unknown>;
  closeStdin(): void;
}

/** After SIGKILL a process can remain only in an uninterruptible system call: the gateway does not wait for that. */
const killGraceMs = 1_000;
const pauseAfter = backoff({ firstMs: 5, maxMs: 250 });
/** A parent that reaps has done so by now. */
const zombiesFromPollMs = 40;

/**
 * Ends a server with everything in its process group: closes its stdin, then SIGTERM, then SIGKILL, each after a grace
 * period. If the leader exits by itself, processes that it left behind get SIGTERM and SIGKILL, too. Resolves as soon
 * as no process is left, at the latest after all periods. Never rejects.
 */
export async function terminateGroup(termination: Termination): Promise<void> {
  const { group, exited, stdinCloseGraceMs = 2_000, terminateGraceMs = 3_000 } = termination;
  termination.closeStdin();
  const leaderIsGone = await settlesWithin(exited, stdinCloseGraceMs);
  if (!leaderIsGone || group.exists()) {
    group.signal('SIGTERM');
    if (!(await isGoneWithin(terminateGraceMs, termination))) {
      group.signal('SIGKILL');
      await isGoneWithin(killGraceMs, termination);
    }
  }
  group.forget();
}

async function isGoneWithin(graceMs: number, { group, exited }: Termination): Promise<boolean> {
  const end = performance.now() + graceMs;
  if (!(await settlesWithin(exited, graceMs))) return false;
  // The system notifies only the parent of a process, and these processes have other parents. So the group is polled.
  for (let polls = 0; group.exists(); polls += 1) {
    const pollMs = pauseAfter(polls);
    if (pollMs >= zombiesFromPollMs && hasOnlyZombies(group.pid)) return true;
    const leftMs = end - performance.now();
    if (leftMs <= 0) return false;
    await sleep(Math.min(pollMs, leftMs));
  }
  return true;
}

/**
 * Whether only zombies are left of a process group. They run no code and hold nothing, but can be signalled without an
 * error until their parent reaps them. In a container whose PID 1 does not reap, that is for ever. Reads every process,
 * so it is for the rare group that does not vanish. False if that cannot be determined.
 */
function hasOnlyZombies(groupPid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return listProcesses().every(({ group, isZombie }) => group !== groupPid || isZombie);
  } catch {
    return false; // no /proc, or no descriptor left to read it: the group counts as living, and is killed
  }
}
