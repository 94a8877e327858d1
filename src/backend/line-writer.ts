import type { Writable } from 'node:stream';
import { flattenLineBreaks } from '../protocol/wire/lines.ts';

const lf = Buffer.from('\n');

/**
 * Up to this size one string is cheaper than a second entry in the writer's queue, or a buffer. In Latin-1 each byte is
 * itself.
 */
const maxTextBytes = 16 * 1024;

/**
 * Writes a message as a line. A large message is not copied, so it must not change afterwards.
 * @param maxQueuedBytes how much may wait for a server that does not read. A single message is always accepted, however
 *   large, since it could otherwise never be sent
 */
export function writeMessage(stream: Writable, message: Uint8Array, maxQueuedBytes: number): 'sent' | 'full' {
  const queuedBytes = stream.writableLength;
  if (queuedBytes > 0 && queuedBytes + message.length + lf.length > maxQueuedBytes) return 'full';
  const text = flattenLineBreaks(message);
  if (text.length <= maxTextBytes) {
    stream.write(`${text.toString('latin1')}\n`, 'latin1');
  } else {
    stream.cork(); // so that one system call writes both
    stream.write(text);
    stream.write(lf);
    stream.uncork();
  }
  return 'sent';
}
