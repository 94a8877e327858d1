/** Limits of time for tests. None depends on how fast the machine is: a job that is measured on the spot is the measure. */

/** 256 KiB of what servers write. Its values are read by the JSON.parse of V8, which needs no compiling. */
const reference = `[${'{"name":"t","a":[1,2,{}]},'.repeat(10_000)}0]`;

/** The processor time that one unit of `costOf` took where the limits of the tests were chosen. */
const unitMsThere = 8;

/**
 * The processor time of some work in milliseconds. Unlike the clock, it does not count other processes of a loaded
 * machine.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** What a unit of `costOf` takes on this machine, now. The first runs are slower, so the least of some counts. */
function unitMs(): number {
  return 4 * Math.min(...Array.from({ length: 4 }, () => cpuMsOf(() => JSON.parse(reference))));
}

/**
 * The cost of some work. One unit is the processor time in which JSON.parse reads 1 MiB of small values on this machine,
 * at this moment. Garbage collections and compiling come in between, so the least of a few tries counts.
 * @param enough a cost below this is low enough, and needs no further try
 */
export function costOf(work: () => void, enough: number, tries = 5): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < tries && least >= enough; tried += 1) {
    const ms = cpuMsOf(work);
    least = Math.min(least, ms / unitMs());
  }
  return least;
}

/** The cost of the longest turn of the event loop that some work takes; otherwise like `costOf`. */
export async function costOfTurn(work: () => unknown, enough: number, tries = 5): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < tries && least >= enough; tried += 1)
    least = Math.min(least, (await longestTurnMs(work)) / unitMs());
  return least;
}

async function longestTurnMs(work: () => unknown): Promise<number> {
  let isOver = false;
  let longest = 0;
  let before = process.cpuUsage();
  const done = Promise.resolve(work()).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1_000);
    before = process.cpuUsage();
  }
  await done;
  return longest;
}

/** A limit of time that was chosen on a fast machine, for this one: slower machines get as much more as they are slower. */
export function msHere(ms: number): number {
  return ms * Math.max(1, unitMs() / unitMsThere);
}
