/**
 * A text of this size takes milliseconds to read. Ten of them in one turn of the event loop would hold up everybody else
 * for as long as all ten take (P8).
 */
const largeBytes = 512 * 1024;

/** A request on a new connection needs two turns until it is answered. It must not wait for one large read in each. */
const turnsBetween = 3;

/** One step of some work. Returns true if it was the last one. */
type Step = () => boolean;

/** Work that waits for its turns, oldest first. */
const waiting: Step[] = [];

/** True if a text should be read in turns of its own. */
export const isLarge = (bytes: number): boolean => bytes >= largeBytes;

/**
 * Does work step by step, after all work of earlier calls. No other step is done in the same turn of the event loop, and turns for
 * everybody else are in between. Resolves in the turn of the last step. Rejects with the error that a step throws.
 */
export function inOwnTurns(step: Step): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.push(() => {
      try {
        const isDone = step();
        if (isDone) resolve();
        return isDone;
      } catch (cause) {
        reject(cause);
        return true;
      }
    });
    if (waiting.length === 1) setImmediate(next);
  });
}

function next(): void {
  if (waiting[0]?.()) waiting.shift();
  if (waiting.length > 0) afterTurns(turnsBetween, next);
}

function afterTurns(turns: number, then: () => void): void {
  setImmediate(turns === 1 ? then : () => afterTurns(turns - 1, then));
}
