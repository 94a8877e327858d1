import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import { detach } from '../../util/boundary.ts';
import type { QueuedMessage } from '../backend.ts';
import { messagesFor } from './message-texts.ts';

/** A text on its way, and the messages in it: none if the text is something else. */
export interface OutgoingMessage extends QueuedMessage {
  readonly messages: readonly Message[];
}

/** The progress of a message that goes out. Neither promise ever rejects. */
export interface PostProgress {
  /** The server can no longer mistake the order: the next message may go out. */
  readonly passed: Promise<unknown>;
  /** The server has the message, or will never have it. It is no longer held here. */
  readonly settled: Promise<unknown>;
}

/** Sends messages to a server: each goes out when the one before has passed. */
export interface OrderedSender {
  /** Like `Backend.send`, while the backend lives. The message is not copied: it must not change afterwards. */
  send(message: Uint8Array, headers: ForwardedHeaders): 'sent' | 'full';
  /** The destination is known: the queued messages go out. */
  start(deliver: (sending: OutgoingMessage) => PostProgress): void;
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
  let queue: OutgoingMessage[] = [];
  let heldBytes = 0;
  let isRunning = false;
  let deliver: ((sending: OutgoingMessage) => PostProgress) | undefined;

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
          heldBytes -= next.message.length;
        }),
      );
      await passed;
    }
    isRunning = false;
  };

  return {
    send(text, headers) {
      const message = flattenLineBreaks(text);
      const messages = messagesFor(message);
      const isRequest = messages.some(({ kind }) => kind === 'request');
      const { length } = message;
      if (heldBytes > 0 && heldBytes + length > (isRequest ? maxQueuedBytes : 2 * maxQueuedBytes)) return 'full';
      queue.push({ message, headers, messages });
      heldBytes += length;
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
      for (const { message } of remaining) heldBytes -= message.length;
      return remaining;
    },
  };
}
