import { constants, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/** Writes never block on a reader, and a terminal does not become the controlling terminal of this process. */
const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * Returns a descriptor for stdout or stderr that fails with EAGAIN where its reader takes nothing, instead of blocking.
 * A file takes everything, so its descriptor is returned unchanged.
 */
export function openNonblocking(target: 1 | 2): number {
  const stat = fstatSync(target);
  // A socket cannot be opened again. Node.js makes it nonblocking when it creates the stream.
  if (stat.isSocket()) makeStream(target);
  if (!stat.isFIFO() && !isatty(target)) return target;
  try {
    // A new open file description keeps other users of the same pipe or terminal in blocking mode.
    return openSync(`/proc/self/fd/${target}`, flags);
  } catch {
    return target; // no /proc here, or a terminal of another user
  }
}

const makeStream = (target: 1 | 2): NodeJS.WriteStream => (target === 1 ? process.stdout : process.stderr);
