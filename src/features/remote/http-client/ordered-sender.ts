import type { QueuedMessage } from '../../../core/backend/backend.ts';
import { HeldBytes } from '../../../core/backend/held-bytes.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';

/** The progress of a message that goes out. Neither promise ever rejects. */
export interface PostProgress {
  /** The server can no longer mistake the order: the next message may go out. */
  readonly passed: Promise<unknown>;
  /** The server has the message, or will never have it. It is no longer held here. */
  readonly settled: Promise<unknown>;
}

/** Sends messages to a server: each goes out when the one before has passed. */
export interface OrderedSender {
  /** Like `Backend.send`, while the backend lives. The text is not copied: it must not change afterwards. */
  send(message: Message, headers: ForwardedHeaders): 'sent' | 'full';
  /** The destination is known: the queued messages go out. */
  start(deliver: (sending: QueuedMessage) => PostProgress): void;
  /** Sends nothing more: queued and later messages wait. */
  hold(): void;
  /** Removes and returns the queued messages. */
  takeAll(): readonly QueuedMessage[];
}

/**
 * Creates a sender that keeps the order of messages.
 * @param onFault called with an exception of `deliver`; nothing more is sent then
 * @param maxQueuedBytes how much may wait, or be under way. A single message is always accepted. Messages that are no
 *   requests may use as much again: requests wait for their calls, and a cancellation or response may end one
 */
export function createOrderedSender(maxQueuedBytes: number, onFault: (cause: unknown) => void): OrderedSender {
  let queue: QueuedMessage[] = [];
  const held = new HeldBytes();
  let isRunning = false;
  let deliver: ((sending: QueuedMessage) => PostProgress) | undefined;

  const drainQueue = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true; // stays set after a fault
    while (deliver !== undefined) {
      const next = queue.shift();
      if (next === undefined) break;
      const { passed, settled } = deliver(next);
      detach(
        'backend',
        settled.then(() => {
          held.bytes -= next.message.text.length;
        }),
      );
      await passed;
    }
    isRunning = false;
  };

  return {
    send(message, headers) {
      const { length } = message.text;
      const maxBytes = message.kind === 'request' ? maxQueuedBytes : 2 * maxQueuedBytes;
      if (held.bytes > 0 && held.bytes + length > maxBytes) return 'full';
      queue.push({ message, headers });
      held.bytes += length;
      detach('backend', drainQueue(), onFault);
      return 'sent';
    },
    start(deliverNext) {
      deliver = deliverNext;
      detach('backend', drainQueue(), onFault);
    },
    hold() {
      deliver = undefined;
    },
    takeAll() {
      const remaining = queue;
      queue = [];
      for (const { message } of remaining) held.bytes -= message.text.length;
      return remaining;
    },
  };
}
