import type { Writable } from 'node:stream';
import { writeMessage } from '../../line-writer.ts';
import { afterLoopTurn } from './end-of-loop-turn.ts';

/** The way of messages to a server's stdin. */
export interface StdioInput {
  /** As `Backend.send`. The message is not copied if it is large, so it must not be changed afterwards. */
  send(message: Uint8Array): 'sent' | 'full' | 'ended';
  /** Closes stdin after what is queued. */
  end(): void;
}

/**
 * Writes messages as lines, in order: the first of a turn of the event loop at once, those that come in the same turn
 * behind it together, by one system call.
 * @param maxQueuedBytes see `writeMessage`
 * @param onBroken the server does not read any more (EPIPE): it has exited or closed its stdin
 */
export function createStdin(
  stdin: Writable,
  { maxQueuedBytes, onBroken }: { readonly maxQueuedBytes: number; onBroken(): void },
): StdioInput {
  stdin.on('error', onBroken);
  let isHeld = false;
  const release = (): void => {
    isHeld = false;
    stdin.uncork();
  };
  return {
    send(message) {
      if (!stdin.writable) return 'ended';
      const outcome = writeMessage(stdin, message, maxQueuedBytes);
      if (!isHeld) {
        isHeld = true;
        stdin.cork();
        afterLoopTurn(release);
      }
      return outcome;
    },
    end() {
      stdin.end();
    },
  };
}
