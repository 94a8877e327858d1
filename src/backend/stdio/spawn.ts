import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** A program of the operator's configuration. Nothing in it ever comes from a client. */
export interface Program {
  /** A path, or a name that is looked up in the PATH of `env`. */
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  /** The whole environment of the process; see `childEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
}

/** A running program, or the error that will say why it does not run. */
export type Spawned =
  | { readonly pid: number; readonly child: ChildProcessByStdio<Writable, Readable, Readable> }
  | { readonly failure: Promise<unknown> };

/**
 * Starts a program without a shell, as the leader of its own process group, with three pipes and no other descriptor.
 * Never throws.
 */
export function spawnProgram({ command, args, cwd, env }: Program): Spawned {
  try {
    const child = spawn(command, args, { cwd, env, shell: false, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    if (child.pid !== undefined) return { pid: child.pid, child };
    // ENOENT, EACCES, EAGAIN, EMFILE and ENFILE come as an event (with the last two, `child.stdin` does not even exist)
    return { failure: new Promise((resolve) => child.once('error', resolve)) };
  } catch (error) {
    // and the others (ENOTDIR, E2BIG, a NUL in an argument) are thrown
    return { failure: Promise.resolve(error) };
  }
}
