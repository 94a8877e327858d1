import type { Writable } from 'node:stream';
import { flattenLineBreaks } from '../protocol/lines.ts';

const lf = Buffer.from('\n');

/** Up to here one copy costs less than a second entry in the writer's queue. */
const maxCopiedBytes = 16 * 1024;

/**
 * Writes a message as a line. It is not copied if it is large, so it must not be changed afterwards.
 * @param maxQueuedBytes how much may wait for a server that does not read. One message alone is always taken, however
 *   large, since it could otherwise never be sent
 */
export function writeMessage(stream: Writable, message: Uint8Array, maxQueuedBytes: number): 'sent' | 'full' {
  const queuedBytes = stream.writableLength;
  if (queuedBytes > 0 && queuedBytes + message.length + lf.length > maxQueuedBytes) return 'full';
  const text = flattenLineBreaks(message);
  if (text.length <= maxCopiedBytes) {
    stream.write(Buffer.concat([text, lf]));
  } else {
    stream.cork(); // so that both go out by one system call
    stream.write(text);
    stream.write(lf);
    stream.uncork();
  }
  return 'sent';
}
