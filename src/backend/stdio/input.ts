import type { Writable } from 'node:stream';
import { writeMessage } from '../line-writer.ts';

/** The way of messages to a server's stdin. */
export interface StdioInput {
  /** As `Backend.send`. The message is not copied if it is large, so it must not be changed afterwards. */
  send(message: Uint8Array): 'sent' | 'full' | 'ended';
  /** Closes stdin after what is queued. */
  end(): void;
}

/**
 * Writes messages as lines, in order.
 * @param maxQueuedBytes see `writeMessage`
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
      return writeMessage(stdin, message, maxQueuedBytes);
    },
    end() {
      stdin.end();
    },
  };
}
