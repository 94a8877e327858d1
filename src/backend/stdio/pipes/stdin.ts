// src/backend/stdio/pipes: reads and writes the three pipes of a server's process.
import type { Writable } from 'node:stream';
import type { Message } from '../../../protocol/message/message.ts';
import { writeMessage } from '../../line-writer.ts';
import { afterLoopTurn } from './end-of-loop-turn.ts';

/** Writes messages to a server's stdin. */
export interface StdioInput {
  /** Like `Backend.send`. A large message is not copied, so it must not change afterwards. */
  send(message: Message): 'sent' | 'full' | 'ended';
  /** Closes stdin after the queued messages. */
  end(): void;
}

/**
 * Writes messages as lines, in order. The first message of a turn of the event loop is written at once; one system call
 * writes those that follow in the same turn.
 * @param maxQueuedBytes see `writeMessage`
 * @param onBroken the server no longer reads (EPIPE): it has exited or closed its stdin
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
      const outcome = writeMessage(stdin, message.text, maxQueuedBytes);
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
