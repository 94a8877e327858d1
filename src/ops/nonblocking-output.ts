import { constants, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/** Never waits for a reader, and makes no terminal this process's own. */
const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * A descriptor for what stdout or stderr is, which refuses with EAGAIN what its reader does not take, in place of waiting for it.
 * A file takes everything, and stays as it is.
 */
export function openNonblocking(target: 1 | 2): number {
  const stat = fstatSync(target);
  // A socket cannot be opened anew. Node.js takes it out of blocking mode itself when it makes its stream of it.
  if (stat.isSocket()) makeStream(target);
  if (!stat.isFIFO() && !isatty(target)) return target;
  try {
    // Opened anew, so that not to wait holds for these lines alone, and not for others that have the same pipe or terminal.
    return openSync(`/proc/self/fd/${target}`, flags);
  } catch {
    return target; // no /proc here, or a terminal of another user
  }
}

const makeStream = (target: 1 | 2): NodeJS.WriteStream => (target === 1 ? process.stdout : process.stderr);
