import type { Writable } from 'node:stream';
import { flattenLineBreaks } from '../protocol/wire/lines.ts';
import { HeldBytes } from './held-bytes.ts';

const lf = Buffer.from('\n');

/**
 * Up to this size one string is cheaper than a second entry in the writer's queue, or a buffer. In Latin-1 each byte is
 * itself.
 */
const maxTextBytes = 16 * 1024;

/** What waits for the servers that do not read. */
const held = new WeakMap<Writable, HeldBytes>();

/** Counts the bytes of a text until it is written. Returns the function to call then. */
function hold(stream: Writable, { length }: Uint8Array): () => void {
  const bytes = held.get(stream) ?? new HeldBytes();
  held.set(stream, bytes);
  bytes.bytes += length;
  return () => {
    bytes.bytes -= length;
  };
}

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
    const line = `${text.toString('latin1')}\n`;
    if (queuedBytes === 0) stream.write(line, 'latin1');
    else stream.write(line, 'latin1', hold(stream, text));
  } else {
    stream.cork(); // so that one system call writes both
    stream.write(text, hold(stream, text));
    stream.write(lf);
    stream.uncork();
  }
  return 'sent';
}
