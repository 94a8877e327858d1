// src/backend/stdio/launch: finds, limits and starts the program of a server, and explains why it cannot start.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { looksRunnable } from './locate-program.ts';
import type { Program } from './program.ts';

/** A program that runs. */
export interface RunningProgram {
  readonly pid: number;
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** The launcher was used: its exit code tells whether the command could be started. */
  readonly isLaunched: boolean;
}

/** The error that explains why a program does not run. */
export interface FailedSpawn {
  readonly failure: Promise<unknown>;
}

/**
 * Starts a program without a shell, as the leader of its own process group, with three pipes and no other descriptor. A
 * command that cannot be started gets no launcher, so that the error comes from the operating system and not the
 * launcher. Never throws.
 */
export function spawnProgram(program: Program): RunningProgram | FailedSpawn {
  const { command, args, cwd, env, uid, gid, launcher = [] } = program;
  const user = { ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }) };
  const isLaunched = launcher.length > 0 && looksRunnable(program);
  const [file = command, ...words] = [...(isLaunched ? launcher : []), command, ...args];
  try {
    const options = { cwd, env, ...user, shell: false, detached: true };
    const child = spawn(file, words, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    if (child.pid !== undefined) return { pid: child.pid, child, isLaunched };
    // ENOENT, EACCES, EAGAIN, EMFILE and ENFILE come as an event. With the last two, `child.stdin` does not even exist.
    return { failure: new Promise((resolve) => child.once('error', resolve)) };
  } catch (error) {
    // The others (ENOTDIR, E2BIG, a NUL in an argument) are thrown.
    return { failure: Promise.resolve(error) };
  }
}
