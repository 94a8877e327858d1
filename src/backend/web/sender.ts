import { settlesWithin } from '../settles-within.ts';

/** What becomes of a message that goes out. Neither ever rejects. */
export interface Delivery {
  /** The server can no longer mistake the order: the next message may go out. */
  readonly passed: Promise<void>;
  /** The server has the message, or will never have it: it is no longer held here. */
  readonly settled: Promise<void>;
}

/** The way of messages to a server: each goes out when the one before has passed. */
export interface Sender {
  /** As `Backend.send`, while the backend lives. The message is not copied: it must not be changed afterwards. */
  send(message: Uint8Array): 'sent' | 'full';
  /** There is somewhere to send to: what waits goes out. */
  start(deliver: (message: Uint8Array) => Delivery): void;
  /** Drops what waits. */
  stop(): void;
}

/**
 * Sends messages in order.
 * @param maxQueuedBytes how much may wait, or be under way. One message alone is always taken
 * @param maxHoldMs a message that has not passed after so long holds up the others no longer
 */
export function createSender({
  maxQueuedBytes,
  maxHoldMs,
}: {
  readonly maxQueuedBytes: number;
  readonly maxHoldMs: number;
}): Sender {
  let queue: Uint8Array[] = [];
  let heldBytes = 0;
  let isRunning = false;
  let deliver: ((message: Uint8Array) => Delivery) | undefined;

  const run = async (): Promise<void> => {
    if (deliver === undefined || isRunning) return;
    isRunning = true;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { length } = next;
      const { passed, settled } = deliver(next);
      void settled.then(() => {
        heldBytes -= length;
      });
      await settlesWithin(passed, maxHoldMs);
    }
    isRunning = false;
  };

  return {
    send(message) {
      if (heldBytes > 0 && heldBytes + message.length > maxQueuedBytes) return 'full';
      queue.push(message);
      heldBytes += message.length;
      void run();
      return 'sent';
    },
    start(by) {
      deliver = by;
      void run();
    },
    stop() {
      queue = [];
    },
  };
}
