import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { errorCodeOf } from '../../../../util/text/error-code.ts';
import { StoreDirectoryError } from './store-directory-error.ts';

/**
 * Files that nobody else can have put where the gateway opens them. In a directory that others may write to, a link
 * could lead to any file of this user, and a file of another user could be changed while it is read.
 */

/**
 * Opens a file. It follows no link and waits for no pipe. Throws `StoreDirectoryError` for a link, for anything that is
 * not a file, and for a file of another user.
 */
export function openStoreFile(path: string, flags: number, mode?: number): number {
  let file: number;
  try {
    file = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode);
  } catch (cause) {
    if (errorCodeOf(cause) !== 'ELOOP') throw cause;
    throw new StoreDirectoryError(`${path} is a symbolic link, which the store does not follow. Remove the link.`);
  }
  const found = fstatSync(file);
  if (found.isFile() && isTrusted(found)) return file;
  closeSync(file);
  throw new StoreDirectoryError(
    found.isFile()
      ? `${path} belongs to ${userOf(found)}, not to ${ownUser()}. ${remedy}`
      : `${path} is not a file. Remove it, or use another directory.`,
  );
}

/** Reads a file as `openStoreFile` opens it. */
export function readStoreFile(path: string): string {
  const file = openStoreFile(path, constants.O_RDONLY);
  try {
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/**
 * Throws `StoreDirectoryError` for a directory that is a link, or that belongs to another user. Root may use any, as in
 * a container that runs as root with a volume of another user: what the other user puts there is not opened anyway.
 */
export function requireOwnDirectory(path: string): Stats {
  const found = lstatSync(path);
  if (found.isSymbolicLink()) {
    throw new StoreDirectoryError(
      `${path} is a symbolic link, which the store does not follow. Name the directory itself.`,
    );
  }
  if (isTrusted(found) || process.geteuid?.() === 0) return found;
  throw new StoreDirectoryError(`The directory ${path} belongs to ${userOf(found)}, not to ${ownUser()}. ${remedy}`);
}

const remedy = 'Change its owner (chown), or use another directory.';

/** True for what this user or root has made. Volumes of containers often belong to root. */
const isTrusted = ({ uid }: Stats): boolean => uid === 0 || uid === process.geteuid?.();

const userOf = ({ uid }: Stats): string => `the user with the id ${uid}`;
const ownUser = (): string => `the user of the gateway (${process.geteuid?.()})`;
