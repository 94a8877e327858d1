import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { detach } from '../util/boundary.ts';

/**
 * The interval between two looks at the files. File system events are not used: they miss files that Kubernetes
 * replaces by a link, files that an editor replaces, and files on another host.
 */
const intervalMs = 1_000;

/** One string per file, in their order. A different string means that the file has changed. */
export type FileStates = readonly string[];

/** A watch over files that lasts until `stop`. */
export interface FileWatch {
  stop(): void;
}

/** The current states of files. Take them right after the files were read. */
export const statesOf = (paths: readonly string[]): FileStates =>
  paths.map((path) => {
    try {
      return textOf(statSync(path));
    } catch (error) {
      return codeOf(error);
    }
  });

/**
 * Calls `onChange` when one of these files was changed, replaced, removed or created. Does not keep the process alive.
 * @param known the states of the files when they were last read; by default, their current states
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  known: FileStates = statesOf(paths),
): FileWatch {
  let states = known;
  let isChecking = false;
  let isStopped = false;
  const checkFiles = async (): Promise<void> => {
    if (isChecking) return; // a file on another host may be slow
    isChecking = true;
    const now = await Promise.all(paths.map((path) => stat(path).then(textOf, codeOf)));
    isChecking = false;
    if (isStopped || now.every((state, index) => state === states[index])) return;
    states = now;
    onChange();
  };
  const timer =
    paths.length === 0 ? undefined : setInterval(() => detach('background', checkFiles()), intervalMs).unref();
  return {
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}

/** The access time is not a part of the state. */
const textOf = ({ mtimeMs, ino, size }: Stats): string => `${mtimeMs} ${ino} ${size}`;

/** The state of a file that is missing or not accessible. */
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown';
