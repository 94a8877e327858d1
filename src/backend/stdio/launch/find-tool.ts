import { spawnSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import { isExecutable } from './locate-program.ts';

/** It needs some milliseconds; one that hangs must not hang the gateway. */
const trialMs = 2_000;

/**
 * Looks for a program of the system and tries it once: those of other makers have the name but not what is needed. Takes
 * some milliseconds.
 * @param path the PATH of the gateway; places in it that are not absolute are left out
 * @param trial the arguments with which the right one ends with 0
 * @returns its absolute path, or undefined if there is none that works
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
    .filter((place) => isAbsolute(place))
    .map((place) => join(place, name))
    .find((file) => isExecutable(file) && works(file));
}
