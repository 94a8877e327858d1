// src/core/backend/stdio/pipes: reads and writes the three pipes of a server's process.
import type { Writable } from 'node:stream';
import type { Message } from '../../../protocol/message/message.ts';
import type { Sent } from '../../backend.ts';
import { writeMessage } from '../../line-writer.ts';
import { afterLoopTurn, type TurnListener } from './end-of-loop-turn.ts';

/**
 * Writes messages to a server's stdin as lines, in order. The first message of a turn of the event loop is written at
 * once; one system call writes those that follow in the same turn.
 */
export class StdioInput implements TurnListener {
  readonly #maxQueuedBytes: number;
  /** Undefined until the process runs. */
  #stdin: Writable | undefined;
  /** Wait for the process. */
  readonly #waiting: Message[] = [];
  #waitingBytes = 0;
  #isHeld = false;

  /** @param maxQueuedBytes see `writeMessage` */
  constructor(maxQueuedBytes: number) {
    this.#maxQueuedBytes = maxQueuedBytes;
  }

  /** The process runs. Writes the messages that waited for it. */
  open(stdin: Writable): void {
    this.#stdin = stdin;
    for (const { text } of this.#waiting.splice(0)) writeMessage(stdin, text, Number.POSITIVE_INFINITY);
  }

  /** Like `Backend.send`. A large message is not copied, so it must not change afterwards. */
  send(message: Message): Sent {
    if (this.#stdin === undefined) return this.#wait(message);
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
    this.#stdin?.uncork();
  }

  /** Closes stdin after the queued messages. */
  end(): void {
    this.#stdin?.end();
  }

  #wait(message: Message): 'sent' | 'full' {
    const bytes = message.text.length;
    if (this.#waiting.length > 0 && this.#waitingBytes + bytes > this.#maxQueuedBytes) return 'full';
    this.#waiting.push(message);
    this.#waitingBytes += bytes;
    return 'sent';
  }
}
