import {
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  mkdirSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { lockFile } from './lock-file.ts';
import { openStoreFile, readStoreFile, requireOwnDirectory } from './own-files.ts';
import { syncDirectory } from './segment-files.ts';
import { StoreDirectoryError } from './store-directory-error.ts';

/** The format of the files that this version writes, and the newest one that it reads. */
export const journalFormat = 1;

/** A directory that this process alone uses until it is closed. */
export interface StoreDirectory {
  readonly path: string;
  /** True if users other than the owner may enter the directory. The files in it are for the owner alone anyway. */
  readonly isOpenToOthers: boolean;
  close(): void;
}

/**
 * Opens a directory for the journal, and creates it if it is missing. Throws `StoreDirectoryError` if another process
 * uses the directory, if it cannot be written, if it belongs to another user, or if a newer version has written it.
 */
export function openStoreDirectory(path: string): StoreDirectory {
  let unlock: (() => void) | undefined;
  try {
    makeDirectory(path);
    const { mode } = requireOwnDirectory(path);
    unlock = lockFile(join(path, 'lock'));
    requireFormat(path);
    return { path, isOpenToOthers: (mode & 0o077) !== 0, close: unlock };
  } catch (cause) {
    unlock?.();
    if (cause instanceof StoreDirectoryError) throw cause;
    throw new StoreDirectoryError(explain(path, cause as NodeJS.ErrnoException), { cause });
  }
}

/** Makes a directory and the missing ones above it. The recursion of Node.js does not end in a file system like /proc. */
function makeDirectory(path: string, isRetry = false): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || isRetry || parent === path) throw cause;
    makeDirectory(parent);
    makeDirectory(path, true);
  }
}

/** Reads the file that names the format, or writes it into a new directory. */
function requireFormat(directory: string): void {
  const path = join(directory, 'format.json');
  const format = readFormat(path);
  if (format === undefined) return writeFormat(directory, path);
  if (!Number.isInteger(format)) {
    throw new StoreDirectoryError(`${path} is damaged. Restore the file, or use an empty directory.`);
  }
  if ((format as number) > journalFormat) {
    throw new StoreDirectoryError(
      `${directory} was written by a newer mcp-gangway (format ${format}; this version reads up to ${journalFormat}). ` +
        'Use the newer version, or another directory.',
    );
  }
}

/** The format in the file; undefined if there is no file, and NaN if the file cannot be understood. */
function readFormat(path: string): unknown {
  let text: string;
  try {
    text = readStoreFile(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
  try {
    return (JSON.parse(text) as { readonly format?: unknown } | null)?.format ?? Number.NaN;
  } catch {
    return Number.NaN;
  }
}

function writeFormat(directory: string, path: string): void {
  const temporary = `${path}.new`;
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  // A process that was interrupted has left it.
  if (lstatSync(temporary, { throwIfNoEntry: false }) !== undefined) unlinkSync(temporary);
  const file = openStoreFile(temporary, O_CREAT | O_EXCL | O_WRONLY, 0o600);
  try {
    writeSync(file, `${JSON.stringify({ format: journalFormat })}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncDirectory(directory);
}

function explain(path: string, { code, message }: NodeJS.ErrnoException): string {
  const prefix = `Cannot use the directory ${path} for the store`;
  if (code === 'EACCES' || code === 'EPERM')
    return `${prefix}: this user may not write to the directory (${code}). Change its owner, or use another directory.`;
  if (code === 'EROFS')
    return `${prefix}: its file system is read-only. Mount a volume there, or use another directory.`;
  if (code === 'ENOENT') return `${prefix}: the directory cannot be created there. Use another directory.`;
  if (code === 'ENOTDIR' || code === 'EEXIST') return `${prefix}: a file has this name. Use another directory.`;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return `${prefix}: the disk is full. Free some space, or use another disk.`;
  return `${prefix}: ${message}.`;
}
