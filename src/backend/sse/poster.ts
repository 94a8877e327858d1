import type { ForwardedHeaders } from '../../protocol/forwarded-headers.ts';
import type { Posted } from './post.ts';

/** A message, and the headers that go with its POST. */
export interface Parcel {
  readonly message: Uint8Array;
  readonly headers: ForwardedHeaders;
}

/** The way of messages to a server: one POST after the other. */
export interface Poster {
  /** As `Backend.send`, while the backend lives. The message is not copied: it must not be changed afterwards. */
  send(parcel: Parcel): 'sent' | 'full';
  /** The endpoint is known: what waits is posted. */
  start(deliver: (parcel: Parcel) => Promise<Posted>): void;
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
  onPosted(parcel: Parcel, posted: Posted): void;
}): Poster {
  let queue: Parcel[] = [];
  let queuedBytes = 0;
  let isRunning = false;
  let deliver: ((parcel: Parcel) => Promise<Posted>) | undefined;

  const run = async (): Promise<void> => {
    if (deliver === undefined || isRunning) return;
    isRunning = true;
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const posted = await deliver(next);
      if (queue[0] !== next) break; // stopped meanwhile
      queue.shift();
      queuedBytes -= next.message.length;
      onPosted(next, posted);
    }
    isRunning = false;
  };

  return {
    send(parcel) {
      const { length } = parcel.message;
      if (queue.length > 0 && queuedBytes + length > maxQueuedBytes) return 'full';
      queue.push(parcel);
      queuedBytes += length;
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
