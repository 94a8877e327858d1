import { spawnSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import { isExecutable } from './locate-program.ts';

/** A tool needs some milliseconds; a tool that hangs must not hang the gateway. */
const trialMs = 2_000;

/**
 * Looks for a system program and tries it once: variants of other makers have the name but not the needed features.
 * Takes some milliseconds.
 * @param path the PATH of the gateway; relative directories in it are skipped
 * @param trial the arguments with which the right program exits with 0
 * @returns its absolute path, or undefined if none works
 */
export function findTool(
  path: string | undefined,
  name: string,
  trial: (file: string) => string[],
): string | undefined {
  const works = (file: string): boolean =>
    spawnSync(file, trial(file), { env: {}, stdio: 'ignore', timeout: trialMs }).status === 0;
  return (path ?? '')
    .split(':')
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .find((file) => isExecutable(file) && works(file));
}
