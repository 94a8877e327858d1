/**
 * Reading a text of this size takes milliseconds. Ten of them in one turn of the event loop would delay everybody else
 * by the sum (P8).
 */
const largeBytes = 512 * 1024;

/** A request on a new connection needs two turns until its answer. It must not wait for one large read in each. */
const turnsBetween = 3;

/** One step of some work. Returns true after the last one. */
type Step = () => boolean;

/** Work that waits for its turns, oldest first. */
const waiting: Step[] = [];

/** True if a text should be read in turns of its own. */
export const isLarge = (bytes: number): boolean => bytes >= largeBytes;

/**
 * Does work step by step, after all work of earlier calls. Each step has a turn of the event loop to itself, and turns
 * for everybody else come in between. Resolves in the turn of the last step. Rejects with the error that a step throws.
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
