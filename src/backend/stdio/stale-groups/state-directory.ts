import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { errorCodeOf } from '../../../util/text/error-code.ts';

/**
 * Creates or checks a directory for files that decide which processes the gateway kills. Nobody else may influence
 * them. It is created with mode 0700. An existing one must be a directory of this user that nobody else can read or
 * write. In a directory that all may write to, such as /tmp, another user could have made it, or a symbolic link of
 * that name. Throws with one clear sentence otherwise.
 */
export function prepareStateDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new Error(`The directory ${path} cannot be created (${errorCodeOf(cause)}).`, { cause });
    }
  }
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a directory.`);
  if (found.uid !== process.geteuid?.()) throw new Error(`The directory ${path} belongs to another user.`);
  if ((found.mode & 0o077) !== 0) throw new Error(`The directory ${path} is open to other users. Run chmod 700 on it.`);
}

/**
 * Returns the text of a file in such a directory, or the reason why it cannot be trusted. It follows no link, waits for
 * no pipe, reads no file of another user and none over `maxBytes`. Throws ENOENT if the file is gone.
 */
export function readOwnFile(path: string, maxBytes: number): { readonly text: string } | { readonly fault: string } {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') throw error;
    return {
      fault: errorCodeOf(error) === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${errorCodeOf(error)})`,
    };
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile()) return { fault: 'it is not a file' };
    if (found.uid !== process.geteuid?.()) return { fault: 'it belongs to another user' };
    if ((found.mode & 0o022) !== 0) return { fault: 'other users may write to it' };
    if (found.size > maxBytes) return { fault: `it has more than ${maxBytes} bytes` };
    return { text: readFileSync(file, 'latin1') };
  } catch (error) {
    return { fault: `it cannot be read (${errorCodeOf(error)})` };
  } finally {
    closeSync(file);
  }
}
