import type { Readable } from 'node:stream';
import { afterLoopTurn } from './end-of-loop-turn.ts';

/**
 * Controls reading, which stops for three reasons: the caller paused it, the budget is spent, or a delivery is pending.
 */
export interface ReadBudget {
  /** Counts bytes that were read. */
  consumed(bytes: number): void;
  /** Stops and starts reading for a reason of the caller. */
  pause(): void;
  resume(): void;
  /** Stops reading until `release`, whatever else resumes it: the input so far has to be delivered first. */
  hold(): void;
  release(): void;
}

/**
 * Limits how much is read from a stream in one turn of the event loop, so that other streams get their share (P8).
 * Reading continues in the next turn. Without the limit Node.js reads up to 2 MiB from each of many flooding servers
 * before it handles a client with one small request.
 */
export function createReadBudget(stream: Readable, maxBytesPerTurn: number): ReadBudget {
  let bytes = 0;
  let isPaused = false;
  let hasBudget = true;
  let isHeld = false;
  const resumeIfAllowed = (): void => {
    if (hasBudget && !isPaused && !isHeld) stream.resume();
  };
  const renewBudget = (): void => {
    bytes = 0;
    if (hasBudget) return;
    hasBudget = true;
    resumeIfAllowed();
  };
  return {
    consumed(more) {
      if (bytes === 0) afterLoopTurn(renewBudget);
      bytes += more;
      if (bytes < maxBytesPerTurn || !hasBudget) return;
      hasBudget = false;
      stream.pause();
    },
    pause() {
      isPaused = true;
      stream.pause();
    },
    resume() {
      isPaused = false;
      resumeIfAllowed();
    },
    hold() {
      isHeld = true;
      stream.pause();
    },
    release() {
      isHeld = false;
      resumeIfAllowed();
    },
  };
}
