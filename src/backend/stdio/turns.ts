import type { Readable } from 'node:stream';

/** Reading that can be stopped, by two parties: who reads, and the turns themselves. */
export interface Turns {
  /** Stops and starts reading for a reason of the caller. */
  pause(): void;
  resume(): void;
}

/**
 * Lets a stream have its turn and then others theirs (P8): after so many bytes in one turn of the event loop, reading
 * goes on in the next one. Without it Node.js reads up to 2 MiB from each of many flooding servers before a client
 * with one small request is looked at.
 */
export function takeTurns(stream: Readable, maxBytesPerTurn: number): Turns {
  let bytes = 0;
  let isPaused = false;
  let hasTurn = true;
  stream.on('data', (chunk: Buffer) => {
    if (bytes === 0) {
      setImmediate(() => {
        bytes = 0;
        hasTurn = true;
        if (!isPaused) stream.resume();
      });
    }
    bytes += chunk.length;
    if (bytes < maxBytesPerTurn || !hasTurn) return;
    hasTurn = false;
    stream.pause();
  });
  return {
    pause() {
      isPaused = true;
      stream.pause();
    },
    resume() {
      isPaused = false;
      if (hasTurn) stream.resume();
    },
  };
}
