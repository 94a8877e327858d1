import { closeSync, constants, fsyncSync, lstatSync, openSync, readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

/** One file of the journal. */
export interface SegmentFile {
  readonly number: number;
  readonly path: string;
  readonly bytes: number;
}

const namePattern = /^journal-(\d{8,})\.log$/;

/** Lists the files of the journal in the order in which they were written. */
export function listSegments(directory: string): SegmentFile[] {
  const files = readdirSync(directory).flatMap((name) => {
    const number = namePattern.exec(name)?.[1];
    const path = join(directory, name);
    return number === undefined ? [] : [{ number: Number(number), path, bytes: lstatSync(path).size }];
  });
  return files.sort((a, b) => a.number - b.number);
}

/** Creates the file of a segment for this user alone, and returns its path and descriptor. Throws if it exists. */
export function createSegment(directory: string, number: number): { readonly path: string; readonly file: number } {
  const path = join(directory, `journal-${String(number).padStart(8, '0')}.log`);
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const file = openSync(path, O_CREAT | O_EXCL | O_WRONLY, 0o600);
  try {
    syncDirectory(directory);
  } catch (cause) {
    closeSync(file);
    unlinkSync(path);
    throw cause;
  }
  return { path, file };
}

/** Makes new names in a directory survive a loss of power. */
export function syncDirectory(directory: string): void {
  const file = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
