import type { MailboxBacklog, MailboxBatch, MailboxMessage } from '../instances.ts';

/** Letters for one instance, kept until they are discarded. */
export interface Mailbox {
  /** False, and nothing is put in, if they do not fit; an empty mailbox takes anything. */
  put(letters: readonly MailboxMessage[]): boolean;
  /** What came after the last letters taken; waits at most `waitMs` for the first. */
  take(waitMs: number): Promise<MailboxBatch | undefined>;
  discard(receipt: string): void;
  /** Removes what a sender has put in and was not taken; gives the numbers. */
  withdraw(from: string): readonly number[];
  /** What was not taken yet. */
  waiting(): MailboxBacklog;
  /** Ends a waiting `take`, with nothing. */
  close(): void;
}

/** A letter, and when it was put in. */
interface Kept extends MailboxMessage {
  readonly postedAtMs: number;
}

/**
 * Makes an empty mailbox that refuses letters once it holds `maxBytes`.
 * @param now in milliseconds
 */
export function createMailbox(maxBytes: number, now: () => number): Mailbox {
  let letters: Kept[] = [];
  /** How many letters were discarded and handed out since the beginning; receipts count likewise. */
  let discarded = 0;
  let handedOut = 0;
  let bytes = 0;
  let wake: (() => void) | undefined;

  const deliver = (): MailboxBatch | undefined => {
    const unread = letters.slice(handedOut - discarded);
    if (unread.length === 0) return undefined;
    handedOut += unread.length;
    const given = unread.map(({ from, number, content }) => ({ from, number, content }));
    return { messages: given, ackToken: String(handedOut) };
  };

  return {
    put(more) {
      const size = sizeOf(more);
      if (bytes > 0 && bytes + size > maxBytes) return false;
      const postedAtMs = now();
      letters.push(...more.map((letter) => ({ ...letter, postedAtMs })));
      bytes += size;
      wake?.();
      return true;
    },

    async take(waitMs) {
      if (handedOut - discarded < letters.length || waitMs <= 0) return deliver();
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

    discard(receipt) {
      const count = Number(receipt) - discarded;
      if (!(count > 0)) return; // discarded before
      bytes -= sizeOf(letters.slice(0, count));
      letters = letters.slice(count);
      discarded += count;
    },

    withdraw(from) {
      const isTaken = (index: number): boolean => index < handedOut - discarded;
      const withdrawn = letters.filter((letter, index) => letter.from === from && !isTaken(index));
      letters = letters.filter((letter) => !withdrawn.includes(letter));
      bytes -= sizeOf(withdrawn);
      return withdrawn.map(({ number }) => number);
    },

    waiting() {
      const unread = letters.slice(handedOut - discarded);
      const oldestMs = unread[0] === undefined ? 0 : now() - unread[0].postedAtMs;
      return { bytes: sizeOf(unread), oldestMs };
    },

    close() {
      wake?.();
    },
  };
}

/** What a letter counts beside its content, so that empty ones do not come for free. */
const letterOverheadBytes = 64;

const sizeOf = (letters: readonly MailboxMessage[]): number =>
  letters.reduce((sum, { content }) => sum + content.length + letterOverheadBytes, 0);
