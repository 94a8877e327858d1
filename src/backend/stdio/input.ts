import type { Writable } from 'node:stream';
import { flattenLineBreaks } from '../../protocol/lines.ts';

/** The way of messages to a server's stdin. */
export interface StdioInput {
  /** As `Backend.send`. The message is not copied if it is large, so it must not be changed afterwards. */
  send(message: Uint8Array): 'sent' | 'full' | 'ended';
  /** Closes stdin after what is queued. */
  end(): void;
}

const lf = Buffer.from('\n');

/** Up to here one copy costs less than a second entry in the writer's queue. */
const maxCopiedBytes = 16 * 1024;

/**
 * Writes messages as lines, in order.
 * @param maxQueuedBytes how much may wait for a server that does not read. One message alone is always taken, however
 *   large, since it could otherwise never be sent
 * @param onBroken the server does not read any more (EPIPE): it has exited or closed its stdin
 */
export function createInput(
  stdin: Writable,
  { maxQueuedBytes, onBroken }: { readonly maxQueuedBytes: number; onBroken(): void },
): StdioInput {
  stdin.on('error', onBroken);
  return {
    send(message) {
      if (!stdin.writable) return 'ended';
      const queuedBytes = stdin.writableLength;
      if (queuedBytes > 0 && queuedBytes + message.length + lf.length > maxQueuedBytes) return 'full';
      const text = flattenLineBreaks(message);
      if (text.length <= maxCopiedBytes) {
        stdin.write(Buffer.concat([text, lf]));
      } else {
        stdin.cork(); // so that both go out by one system call
        stdin.write(text);
        stdin.write(lf);
        stdin.uncork();
      }
      return 'sent';
    },
    end() {
      stdin.end();
    },
  };
}
