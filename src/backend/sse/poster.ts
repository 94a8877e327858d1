import type { Posted } from './post.ts';

/** The way of messages to a server: one POST after the other. */
export interface Poster {
  /** As `Backend.send`, while the backend lives. The message is not copied: it must not be changed afterwards. */
  send(message: Uint8Array): 'sent' | 'full';
  /** The endpoint is known: what waits is posted. */
  start(deliver: (message: Uint8Array) => Promise<Posted>): void;
  /** Drops what waits. */
  stop(): void;
}

/**
 * Posts messages strictly in order: the next one only after the server has answered the POST of the one before, since
 * two connections have no order between them.
 * @param maxQueuedBytes how much may wait, for the endpoint too. One message alone is always taken
 * @param onPosted what became of each message
 */
export function createPoster({
  maxQueuedBytes,
  onPosted,
}: {
  readonly maxQueuedBytes: number;
  onPosted(message: Uint8Array, posted: Posted): void;
}): Poster {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let isRunning = false;
  let deliver: ((message: Uint8Array) => Promise<Posted>) | undefined;

  const run = async (): Promise<void> => {
    if (deliver === undefined || isRunning) return;
    isRunning = true;
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const posted = await deliver(next);
      if (queue[0] !== next) break; // stopped meanwhile
      queue.shift();
      queuedBytes -= next.length;
      onPosted(next, posted);
    }
    isRunning = false;
  };

  return {
    send(message) {
      if (queue.length > 0 && queuedBytes + message.length > maxQueuedBytes) return 'full';
      queue.push(message);
      queuedBytes += message.length;
      void run();
      return 'sent';
    },
    start(by) {
      deliver = by;
      void run();
    },
    stop() {
      queue = [];
      queuedBytes = 0;
    },
  };
}
