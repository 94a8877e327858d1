import { lstatSync, mkdirSync } from 'node:fs';
import { errorCodeOf } from '../../util/text/error-code.ts';

/**
 * Creates or checks a directory for the sockets of the gateways of this user, which nobody else may replace. It is
 * created with mode 0700. An existing one must be a directory of this user that nobody else can read or
 * write. In a directory that all may write to, such as /tmp, another user could have made it, or a symbolic link of
 * that name. Throws with one clear sentence otherwise.
 */
export function prepareOwnDirectory(path: string): void {
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
