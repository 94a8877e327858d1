import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import { isInUse, reasonTextOf, StoreDirectoryError } from './disk-errors.ts';

/**
 * Makes the directory of a store if it is missing, and in it the directory of the engine's files. Only this user may
 * enter the latter, so nobody else can read the files, or put a link where the engine opens one. Throws
 * `StoreDirectoryError` if that is not possible, or if one of the directories, or a file, is a link or belongs to another
 * user.
 * @returns the path of the directory of the files
 */
export function makeStoreDirectory(path: string): string {
  try {
    makeDirectory(path);
    requireOwn(path, process.geteuid?.() === 0);
    const files = join(path, 'db');
    makeDirectory(files);
    requireOwn(files, false);
    // A volume may have been mounted with rights for a group.
    if ((lstatSync(files).mode & 0o077) !== 0) chmodSync(files, 0o700);
    // Until then, others may have put something there. The engine follows links, and empties what it finds.
    for (const name of readdirSync(files)) requireOwn(join(files, name), false);
    return files;
  } catch (cause) {
    if (cause instanceof StoreDirectoryError) throw cause;
    const { message } = cause as Error;
    throw new StoreDirectoryError(explain(path, errorCodeOf(cause), message), { cause });
  }
}

/** The error for files that the engine could not open. */
export function openingError(path: string, cause: unknown): StoreDirectoryError {
  if (cause instanceof StoreDirectoryError) return cause;
  if (isInUse(cause)) {
    return new StoreDirectoryError(
      `Another process uses this directory (${path} is locked). A directory belongs to one gateway at a time. ` +
        'Stop that process, use another directory, or share sessions between gateways with Redis.',
    );
  }
  const text = reasonTextOf(cause);
  return new StoreDirectoryError(explain(path, codes.get(text) ?? errorCodeOf(cause), text), { cause });
}

/** The codes of the reasons that the engine tells in words. */
const codes = new Map([
  ['Permission denied', 'EACCES'],
  ['Read-only file system', 'EROFS'],
  ['No space left on device', 'ENOSPC'],
  ['Disk quota exceeded', 'EDQUOT'],
]);

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

/**
 * Throws for a directory or a file that is a link, or that belongs to another user. Root may use the volume of another
 * user, as in a container that runs as root.
 */
function requireOwn(path: string, mayBeOfOther: boolean): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return; // another process uses the directory, and has removed a file
  if (found.isSymbolicLink()) {
    throw new StoreDirectoryError(
      `${path} is a symbolic link, which the store does not follow. Remove the link, or name the directory itself.`,
    );
  }
  if (mayBeOfOther || isTrusted(found)) return;
  throw new StoreDirectoryError(
    `The ${found.isDirectory() ? 'directory' : 'file'} ${path} belongs to the user with the id ${found.uid}, not to the user of the gateway ` +
      `(${process.geteuid?.()}). Change its owner (chown), or use another directory.`,
  );
}

/** True for what this user or root has made. Volumes of containers often belong to root. */
const isTrusted = ({ uid }: Stats): boolean => uid === 0 || uid === process.geteuid?.();

function explain(path: string, code: string, message: string): string {
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
