import type { Writable } from 'node:stream';
import { flattenLineBreaks } from '../protocol/wire/lines.ts';

const lf = Buffer.from('\n');

/** Up to here a text costs less than a second entry in the writer's queue, and than a buffer: as Latin-1 each byte is itself. */
const maxTextBytes = 16 * 1024;

/**
 * Writes a message as a line. It is not copied if it is large, so it must not be changed afterwards.
 * @param maxQueuedBytes how much may wait for a server that does not read. One message alone is always taken, however
 *   large, since it could otherwise never be sent
 */
export function writeMessage(stream: Writable, message: Uint8Array, maxQueuedBytes: number): 'sent' | 'full' {
  const queuedBytes = stream.writableLength;
  if (queuedBytes > 0 && queuedBytes + message.length + lf.length > maxQueuedBytes) return 'full';
  const text = flattenLineBreaks(message);
  if (text.length <= maxTextBytes) {
    stream.write(`${text.toString('latin1')}\n`, 'latin1');
  } else {
    stream.cork(); // so that both go out by one system call
    stream.write(text);
    stream.write(lf);
    stream.uncork();
  }
  return 'sent';
}
