// src/backend/stdio/pipes: reads and writes the three pipes of a server's process.
import type { Writable } from 'node:stream';
import type { Message } from '../../../protocol/message/message.ts';
import { writeMessage } from '../../line-writer.ts';
import { afterLoopTurn, type TurnListener } from './end-of-loop-turn.ts';

/**
 * Writes messages to a server's stdin as lines, in order. The first message of a turn of the event loop is written at
 * once; one system call writes those that follow in the same turn.
 */
export class StdioInput implements TurnListener {
  readonly #stdin: Writable;
  readonly #maxQueuedBytes: number;
  #isHeld = false;

  /** @param maxQueuedBytes see `writeMessage` */
  constructor(stdin: Writable, maxQueuedBytes: number) {
    this.#stdin = stdin;
    this.#maxQueuedBytes = maxQueuedBytes;
  }

  /** Like `Backend.send`. A large message is not copied, so it must not change afterwards. */
  send(message: Message): 'sent' | 'full' | 'ended' {
    if (!this.#stdin.writable) return 'ended';
    const outcome = writeMessage(this.#stdin, message.text, this.#maxQueuedBytes);
    if (!this.#isHeld) {
      this.#isHeld = true;
      this.#stdin.cork();
      afterLoopTurn(this);
    }
    return outcome;
  }

  /** Writes the messages of the turn. */
  endTurn(): void {
    this.#isHeld = false;
    this.#stdin.uncork();
  }

  /** Closes stdin after the queued messages. */
  end(): void {
    this.#stdin.end();
  }
}
