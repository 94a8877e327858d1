/**
 * The work meter (gate 1 of docs/hardening.md). All readers of peers' texts share one count of the work of the current
 * turn of the event loop. Work beyond the share of a turn waits for a turn of its own. So the sum of many small works
 * delays everybody else as little as one large work does (P8).
 *
 * Work is counted, not timed: a count does not depend on the load of the machine.
 */

/**
 * The share of a turn, in units. One unit is the reading of one byte. Reading this much takes a few milliseconds at
 * most. Ten texts that are a little smaller must not have the same turn.
 */
export const shareOfTurn = 512 * 1024;

/**
 * The units of a text besides its bytes: some 500 texts use up the share of a turn. On its way to a client, a message
 * takes 20 microseconds. A chunk of 64 KiB can hold 1,900 messages, and 128 calls in flight have as many answers.
 */
export const unitsOfText = 1024;

/** Less work than this is not forgotten at the end of its turn, so that a small text costs one addition. */
const uncountedUnits = 128 * 1024;

/** A request on a new connection needs two turns until its answer. It must not wait for a step of others in each. */
const turnsBetween = 3;

/** One step of some work. Returns true after the last one. */
type Step = () => boolean;

/** A work, and whether each of its steps takes a whole turn. */
interface Work {
  readonly step: Step;
  readonly isLarge: boolean;
}

/** Works that wait for their turn. Each does one step, and then waits behind the others. */
const waiting: Work[] = [];

/**
 * The large works that take turns with each other. What a large work has read so far is in memory, so further ones
 * begin when one of these is done.
 */
const maxLargeWorks = 4;
const backlog: Work[] = [];
let largeWorks = 0;

let spent = 0;
let isResetDue = false;

/** A turn begins. Simulations call this, whose turns are none of the event loop. */
export function beginTurn(): void {
  isResetDue = false;
  spent = 0;
}

/** Counts work that was done in this turn. */
export function spend(units: number): void {
  spent += units;
  if (spent < uncountedUnits || isResetDue) return;
  isResetDue = true;
  setImmediate(beginTurn);
}

/** Counts work if this turn has room for it. Otherwise the work belongs into `inOwnTurns`. */
export function hasRoomFor(units: number): boolean {
  if (units > 0 && spent + units >= shareOfTurn) return false;
  spend(units);
  return true;
}

/**
 * Does work step by step. A turn has no more steps than fit into its share, and turns for everybody else come in
 * between. Works take turns: a small work waits for at most one step of each other. Resolves in the turn of the last
 * step. Rejects with the error that a step throws.
 * @param units the work of a step; a whole turn by default
 */
export function inOwnTurns(step: Step, units = shareOfTurn): Promise<void> {
  return new Promise((resolve, reject) => {
    const isLarge = units >= shareOfTurn;
    const work = (): boolean => {
      spend(units);
      try {
        const isDone = step();
        if (isDone) resolve();
        return isDone;
      } catch (cause) {
        reject(cause);
        return true;
      }
    };
    add({ step: work, isLarge });
  });
}

/**
 * Acts on items one after the other. What does not fit into this turn is done in turns of its own.
 * @returns undefined if everything is done already
 */
export function actOnEach<T>(
  items: readonly T[],
  unitsOf: (item: T) => number,
  act: (item: T) => void,
): Promise<void> | undefined {
  let units = 0;
  for (const item of items) units += unitsOf(item);
  if (hasRoomFor(units)) {
    for (const item of items) act(item);
    return undefined;
  }
  let next = 0;
  return inOwnTurns(() => {
    for (let done = 0; next < items.length && done < shareOfTurn; next += 1) {
      const item = items[next] as T;
      done += unitsOf(item);
      act(item);
    }
    return next === items.length;
  });
}

/**
 * The work of all walks over one text that cannot be continued in another turn, in values and bytes as `noteWalk` counts
 * them. It takes about 20 milliseconds. A list of 10,000 tools, each edited in three places, takes less.
 */
const maxWalkUnits = 2.5 * 2 ** 20;

let walked = 0;
let isBounded = false;

class TooMuchWork extends Error {}

/**
 * Changes a text of a peer at once. What is found in the text on the way is walked over again and again, so the sum of
 * the walks is limited.
 * @returns `too_much_work` if the text is too complex to be changed in one turn
 */
export function boundedWalks<T>(change: () => T): T | 'too_much_work' {
  if (isBounded) return change();
  isBounded = true;
  walked = 0;
  try {
    return change();
  } catch (cause) {
    if (cause instanceof TooMuchWork) return 'too_much_work';
    throw cause;
  } finally {
    isBounded = false;
    spend(walked);
  }
}

/** The work that the next walk may take, counted as a scan does: a walk that needs more ends there. */
export const roomForWalks = (): number => (isBounded ? maxWalkUnits - walked : Number.MAX_SAFE_INTEGER);

/**
 * Counts a walk over a part of a text. Ends the change of the text if there were too many; see `boundedWalks`.
 * @param work the values and escapes in the part, as a scan counts them; Infinity if there was no room for them
 */
export function noteWalk(work: number, bytes: number): void {
  if (!isBounded) return;
  walked += work + (bytes >> 5);
  if (walked > maxWalkUnits) throw new TooMuchWork();
}

function add(work: Work): void {
  const isFirst = waiting.length === 0;
  if (work.isLarge && largeWorks >= maxLargeWorks) backlog.push(work);
  else enter(work);
  if (isFirst) setImmediate(next);
}

function enter(work: Work): void {
  if (work.isLarge) largeWorks += 1;
  waiting.push(work);
}

function next(): void {
  spent = 0; // the work of others in this turn does not matter: their next work waits
  for (let steps = waiting.length; steps > 0 && spent < shareOfTurn; steps -= 1) {
    const work = waiting[0] as Work;
    const isDone = work.step();
    waiting.shift();
    if (!isDone) waiting.push(work);
    else if (work.isLarge) {
      largeWorks -= 1;
      const following = backlog.shift();
      if (following !== undefined) enter(following);
    }
  }
  if (waiting.length > 0) afterTurns(turnsBetween, next);
}

function afterTurns(turns: number, then: () => void): void {
  setImmediate(turns === 1 ? then : () => afterTurns(turns - 1, then));
}
