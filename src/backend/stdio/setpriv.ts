import { spawnSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { isExecutable } from './locate.ts';

/** What the kernel can send to a server's process when the gateway is killed. */
export type ParentDeathSignal = 'SIGTERM' | 'SIGKILL';

/** It needs some milliseconds; one that hangs must not hang the gateway. */
const probeMs = 2_000;

/** What `setpriv` (setpriv(1), util-linux) ends with if it cannot execute the command. */
const cannotExecute: Readonly<Record<number, string>> = { 126: 'ENOEXEC', 127: 'ENOENT' };

/**
 * Looks for a `setpriv` that can set the parent death signal (prctl(2), PR_SET_PDEATHSIG) and tries it once, since the
 * one of BusyBox and those before util-linux 2.33 cannot. Takes some milliseconds.
 *
 * The kernel counts the end of the *thread* that started the process, so this answers undefined outside of the main
 * thread: a worker's end would kill its servers.
 * @param path the PATH of the gateway; places in it that are not absolute are left out
 * @returns its absolute path, or undefined if there is none that works
 */
export function findSetpriv(path: string | undefined): string | undefined {
  if (process.platform !== 'linux' || !isMainThread) return undefined;
  return (path ?? '')
    .split(':')
    .filter((place) => isAbsolute(place))
    .map((place) => join(place, 'setpriv'))
    .find((file) => isExecutable(file) && works(file));
}

function works(file: string): boolean {
  const [, ...words] = launcherOf(file, 'SIGTERM');
  return spawnSync(file, [...words, file, '--version'], { env: {}, stdio: 'ignore', timeout: probeMs }).status === 0;
}

/** The words before a command that give it a parent death signal. Its own children do not inherit that. */
export const launcherOf = (setpriv: string, signal: ParentDeathSignal): string[] => [
  setpriv,
  '--pdeathsig',
  signal,
  '--',
];

/**
 * The error that a spawn without `setpriv` would have given, if the exit of a process says that `setpriv` could not
 * execute the command; else undefined. For what only the kernel can tell: a missing loader, a wrong architecture.
 * @param output the last lines of its stderr
 */
export function launchFailure(exitCode: number | null, output: readonly string[]): Error | undefined {
  const code = cannotExecute[exitCode ?? 0];
  if (code === undefined || output.length !== 1 || !output[0]?.startsWith('setpriv: ')) return undefined;
  return Object.assign(new Error(output[0]), { code });
}
