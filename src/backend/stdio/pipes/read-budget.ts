import type { Readable } from 'node:stream';
import { afterLoopTurn } from './end-of-loop-turn.ts';

/** Reading that can be stopped for three reasons: by the reader, by the turns themselves, and for what is not delivered yet. */
export interface ReadBudget {
  /** So many bytes were read. */
  consumed(bytes: number): void;
  /** Stops and starts reading for a reason of the caller. */
  pause(): void;
  resume(): void;
  /** Stops reading until `release`, whatever else resumes it: what was read has to be delivered first. */
  hold(): void;
  release(): void;
}

/**
 * Lets a stream have its turn and then others theirs (P8): after so many bytes in one turn of the event loop, reading
 * goes on in the next one. Without it Node.js reads up to 2 MiB from each of many flooding servers before a client
 * with one small request is looked at.
 */
export function createReadBudget(stream: Readable, maxBytesPerTurn: number): ReadBudget {
  let bytes = 0;
  let isPaused = false;
  let hasTurn = true;
  let isHeld = false;
  const goOn = (): void => {
    if (hasTurn && !isPaused && !isHeld) stream.resume();
  };
  const begin = (): void => {
    bytes = 0;
    if (hasTurn) return;
    hasTurn = true;
    goOn();
  };
  return {
    consumed(more) {
      if (bytes === 0) afterLoopTurn(begin);
      bytes += more;
      if (bytes < maxBytesPerTurn || !hasTurn) return;
      hasTurn = false;
      stream.pause();
    },
    pause() {
      isPaused = true;
      stream.pause();
    },
    resume() {
      isPaused = false;
      goOn();
    },
    hold() {
      isHeld = true;
      stream.pause();
    },
    release() {
      isHeld = false;
      goOn();
    },
  };
}
