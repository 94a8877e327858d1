import { isMainThread } from 'node:worker_threads';
import { findTool } from './find-tool.ts';

/** The signals that the kernel can send to a server's process when the gateway is killed. */
export type ParentDeathSignal = 'SIGTERM' | 'SIGKILL';

/** Exit codes of `setpriv` (util-linux) if it cannot execute the command. */
const cannotExecute: Readonly<Record<number, string>> = { 126: 'ENOEXEC', 127: 'ENOENT' };

/**
 * Looks for a `setpriv` that can set the parent death signal (prctl(2), PR_SET_PDEATHSIG); see `findTool`. The one of
 * BusyBox and those before util-linux 2.33 cannot.
 *
 * The kernel sends the signal at the end of the *thread* that started the process. So this returns undefined outside of
 * the main thread: the end of a worker would kill its servers.
 */
export function findSetpriv(path: string | undefined): string | undefined {
  if (process.platform !== 'linux' || !isMainThread) return undefined;
  return findTool(path, 'setpriv', (file) => [...launcherOf(file, 'SIGTERM').slice(1), file, '--version']);
}

/** Returns the words before a command that give it a parent death signal. Its own children do not inherit that. */
export const launcherOf = (setpriv: string, signal: ParentDeathSignal): string[] => [
  setpriv,
  '--pdeathsig',
  signal,
  '--',
];

/**
 * Returns the error of a spawn without a launcher, if the process's exit says that the launcher could not execute the
 * command; else undefined. Needed for errors that only the kernel finds: a missing loader, a wrong architecture.
 * @param output the last lines of the process's stderr
 */
export function launchFailure(exitCode: number | null, output: readonly string[]): Error | undefined {
  const code = cannotExecute[exitCode ?? 0];
  if (code === undefined || output.length !== 1 || !output[0]?.startsWith('setpriv: ')) return undefined;
  // denied to another user; the gateway's own user was checked before
  const isDenied = output[0]?.endsWith(': Permission denied');
  return Object.assign(new Error(output[0]), { code: isDenied ? 'EACCES' : code });
}
