/**
 * A text of this size takes milliseconds to read. Ten of them in one turn of the event loop would hold up everybody else
 * for as long as all ten take (P8).
 */
const largeBytes = 512 * 1024;

/** A request on a new connection needs two turns until it is answered. It must not wait for one large read in each. */
const turnsBetween = 3;

/** Reads of large texts that wait for their turn, oldest first. */
const waiting: (() => void)[] = [];

/** True if a text should be read in a turn of its own. */
export const isLarge = (bytes: number): boolean => bytes >= largeBytes;

/**
 * Runs the reads of large texts in the order of the calls, each in a turn of the event loop in which no other one is read, and with
 * turns for everybody else in between. `read` must not throw.
 */
export function readInOwnTurn(read: () => void): void {
  waiting.push(read);
  if (waiting.length === 1) setImmediate(next);
}

function next(): void {
  waiting[0]?.();
  waiting.shift();
  if (waiting.length > 0) afterTurns(turnsBetween, next);
}

function afterTurns(turns: number, then: () => void): void {
  setImmediate(turns === 1 ? then : () => afterTurns(turns - 1, then));
}
