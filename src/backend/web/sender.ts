import type { Parcel } from '../backend.ts';

/** What becomes of a message that goes out. Neither ever rejects. */
export interface Delivery {
  /** The server can no longer mistake the order: the next message may go out. */
  readonly passed: Promise<unknown>;
  /** The server has the message, or will never have it: it is no longer held here. */
  readonly settled: Promise<unknown>;
}

/** The way of messages to a server: each goes out when the one before has passed. */
export interface Sender {
  /** As `Backend.send`, while the backend lives. The message is not copied: it must not be changed afterwards. */
  send(parcel: Parcel): 'sent' | 'full';
  /** There is somewhere to send to: what waits goes out. */
  start(deliver: (parcel: Parcel) => Delivery): void;
  /** Sends nothing more: what waits is kept, and what is sent from now on waits too. */
  hold(): void;
  /** Takes out what waits. */
  takeAll(): readonly Parcel[];
}

/**
 * Sends messages in order.
 * @param maxQueuedBytes how much may wait, or be under way. One message alone is always taken
 */
export function createSender(maxQueuedBytes: number): Sender {
  let queue: Parcel[] = [];
  let heldBytes = 0;
  let isRunning = false;
  let deliver: ((parcel: Parcel) => Delivery) | undefined;

  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    while (deliver !== undefined) {
      const next = queue.shift();
      if (next === undefined) break;
      const { passed, settled } = deliver(next);
      void settled.then(() => {
        heldBytes -= next.message.length;
      });
      await passed;
    }
    isRunning = false;
  };

  return {
    send(parcel) {
      const { length } = parcel.message;
      if (heldBytes > 0 && heldBytes + length > maxQueuedBytes) return 'full';
      queue.push(parcel);
      heldBytes += length;
      void run();
      return 'sent';
    },
    start(by) {
      deliver = by;
      void run();
    },
    hold() {
      deliver = undefined;
    },
    takeAll() {
      const left = queue;
      queue = [];
      for (const { message } of left) heldBytes -= message.length;
      return left;
    },
  };
}
