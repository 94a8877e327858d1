import type { MailboxBacklog, MailboxBatch, MailboxMessage } from '../instances.ts';

/** The messages for one instance, kept until they are acknowledged. */
export interface Mailbox {
  /** Stores all messages, or returns false if they do not fit. An empty mailbox takes anything. */
  put(messages: readonly MailboxMessage[]): boolean;
  /** Returns the messages that were not delivered yet; waits at most `waitMs` for the first one. */
  take(waitMs: number): Promise<MailboxBatch | undefined>;
  /** Frees all messages up to and including a delivery. */
  acknowledge(ackToken: string): void;
  /** Removes the undelivered messages of a sender and returns their numbers. */
  withdraw(from: string): readonly number[];
  /** Returns the size and age of the undelivered messages. */
  backlog(): MailboxBacklog;
  /** Ends a waiting `take` without messages. */
  close(): void;
}

interface StoredMessage extends MailboxMessage {
  readonly postedAtMs: number;
}

/**
 * Makes an empty mailbox that refuses messages once it has `maxBytes`.
 * @param now in milliseconds
 */
export function createMailbox(maxBytes: number, now: () => number): Mailbox {
  let messages: StoredMessage[] = [];
  /** How many messages were acknowledged and delivered since the beginning. An ack token is the second count. */
  let acknowledged = 0;
  let delivered = 0;
  let bytes = 0;
  let wake: (() => void) | undefined;

  const deliver = (): MailboxBatch | undefined => {
    const unread = messages.slice(delivered - acknowledged);
    if (unread.length === 0) return undefined;
    delivered += unread.length;
    const batch = unread.map(({ from, number, content }) => ({ from, number, content }));
    return { messages: batch, ackToken: String(delivered) };
  };

  return {
    put(more) {
      const size = sizeOf(more);
      if (bytes > 0 && bytes + size > maxBytes) return false;
      const postedAtMs = now();
      messages.push(...more.map((message) => ({ ...message, postedAtMs })));
      bytes += size;
      wake?.();
      return true;
    },

    async take(waitMs) {
      if (delivered - acknowledged < messages.length || waitMs <= 0) return deliver();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wake = undefined;
      return deliver();
    },

    acknowledge(ackToken) {
      const count = Number(ackToken) - acknowledged;
      if (!(count > 0)) return; // acknowledged before
      bytes -= sizeOf(messages.slice(0, count));
      messages = messages.slice(count);
      acknowledged += count;
    },

    withdraw(from) {
      const isDelivered = (index: number): boolean => index < delivered - acknowledged;
      const withdrawn = messages.filter((message, index) => message.from === from && !isDelivered(index));
      messages = messages.filter((message) => !withdrawn.includes(message));
      bytes -= sizeOf(withdrawn);
      return withdrawn.map(({ number }) => number);
    },

    backlog() {
      const unread = messages.slice(delivered - acknowledged);
      const oldestMs = unread[0] === undefined ? 0 : now() - unread[0].postedAtMs;
      return { bytes: sizeOf(unread), oldestMs };
    },

    close() {
      wake?.();
    },
  };
}

/** The bytes that a message counts beside its content, so that empty messages count too. */
const messageOverheadBytes = 64;

const sizeOf = (messages: readonly MailboxMessage[]): number =>
  messages.reduce((sum, { content }) => sum + content.length + messageOverheadBytes, 0);
