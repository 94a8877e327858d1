import type { Delivery, Letter } from '../instances.ts';

/** Letters for one instance, kept until they are discarded. */
export interface Mailbox {
  /** False, and nothing is put in, if they do not fit; an empty mailbox takes anything. */
  put(letters: readonly Letter[]): boolean;
  /** What came after the last letters taken; waits at most `waitMs` for the first. */
  take(waitMs: number): Promise<Delivery | undefined>;
  discard(receipt: string): void;
  /** Ends a waiting `take`, with nothing. */
  close(): void;
}

/** Makes an empty mailbox that refuses letters once it holds `maxBytes`. */
export function createMailbox(maxBytes: number): Mailbox {
  let letters: Letter[] = [];
  /** How many letters were discarded and handed out since the beginning; receipts count likewise. */
  let discarded = 0;
  let handedOut = 0;
  let bytes = 0;
  let wake: (() => void) | undefined;

  const deliver = (): Delivery | undefined => {
    const unread = letters.slice(handedOut - discarded);
    if (unread.length === 0) return undefined;
    handedOut += unread.length;
    return { letters: unread, receipt: String(handedOut) };
  };

  return {
    put(more) {
      const size = sizeOf(more);
      if (bytes > 0 && bytes + size > maxBytes) return false;
      letters.push(...more);
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

    close() {
      wake?.();
    },
  };
}

/** What a letter counts beside its content, so that empty ones do not come for free. */
const letterOverheadBytes = 64;

const sizeOf = (letters: readonly Letter[]): number =>
  letters.reduce((sum, { content }) => sum + content.length + letterOverheadBytes, 0);
