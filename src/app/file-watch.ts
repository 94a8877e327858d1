import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { detach } from '../util/boundary.ts';

/**
 * How often files are looked at. By their state and not by events of the file system: those miss what is replaced by a link,
 * as Kubernetes does it, what an editor puts in the place of a file, and what lies on another host.
 */
const lookMs = 1_000;

/** By what it is seen that files were changed, in their order. */
export type FileStates = readonly string[];

/** Files that are looked at until that is stopped. */
export interface FileWatch {
  stop(): void;
}

/** The states of files as they are now: to be asked for right after they were read. */
export const statesOf = (paths: readonly string[]): FileStates =>
  paths.map((path) => {
    try {
      return textOf(statSync(path));
    } catch (error) {
      return codeOf(error);
    }
  });

/**
 * Calls `onChange` when one of these files was changed, replaced, removed or made. Does not keep the process.
 * @param known their states when they were read last, if that is not just now
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  known: FileStates = statesOf(paths),
): FileWatch {
  let states = known;
  let isLooking = false;
  let isStopped = false;
  const look = async (): Promise<void> => {
    if (isLooking) return; // a file on another host may take its time
    isLooking = true;
    const now = await Promise.all(paths.map((path) => stat(path).then(textOf, codeOf)));
    isLooking = false;
    if (isStopped || now.every((state, index) => state === states[index])) return;
    states = now;
    onChange();
  };
  const timer = paths.length === 0 ? undefined : setInterval(() => detach('background', look()), lookMs).unref();
  return {
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}

/** Not the time of the last read. */
const textOf = ({ mtimeMs, ino, size }: Stats): string => `${mtimeMs} ${ino} ${size}`;

/** A file that is not there, or must not be looked at, is in a state, too. */
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown';
