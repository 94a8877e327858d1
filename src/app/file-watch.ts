import { type Stats, statSync, unwatchFile, watchFile } from 'node:fs';
import { contain } from '../core/util/boundary.ts';
import { errorCodeOf } from '../core/util/text/error-code.ts';

/**
 * The interval between two looks at a file. File system events are not used: they miss files that Kubernetes replaces by
 * a link, files that an editor replaces, and files on another host.
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
      return errorCodeOf(error); // the file is missing or not accessible
    }
  });

/**
 * Calls `onChange` when one of these files was changed, replaced, removed or created. Files that change together cause
 * one call. Does not keep the process alive.
 * @param known the states of the files when they were last read; by default, their current states
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  known: FileStates = statesOf(paths),
): FileWatch {
  let states = known;
  const check = (): void => {
    const now = statesOf(paths);
    if (now.every((state, index) => state === states[index])) return;
    states = now;
    contain('background', onChange);
  };
  for (const path of paths) watchFile(path, { interval: intervalMs, persistent: false }, check);
  // Node.js compares with its own first look, which comes later than the caller's read.
  const firstCheck = setTimeout(check, intervalMs).unref();
  return {
    stop() {
      clearTimeout(firstCheck);
      for (const path of paths) unwatchFile(path, check);
    },
  };
}

/** The access time is not a part of the state. */
const textOf = ({ mtimeMs, ino, size }: Stats): string => `${mtimeMs} ${ino} ${size}`;
