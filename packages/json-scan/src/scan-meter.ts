/**
 * Counts the work of a program that reads texts of its peers (P8). The program decides how much of it one turn of the
 * event loop may have. The work of a walk is counted in values and escapes, as a scan counts them.
 */
export interface ScanMeter {
  /** Counts work that was done in this turn. One unit is about the reading of one byte. */
  spend(units: number): void;
  /** The work that the next walk over a part of a text may take. A walk that needs more ends there. */
  roomForWalks(): number;
  /**
   * Counts a walk over a part of a text. It may throw, which ends whatever walks over the text.
   * @param work the values and escapes in the part; Infinity if there was no room for them
   */
  noteWalk(work: number, bytes: number): void;
}

/** The meter of this program. A program without one has no limit besides those of each scan. */
export let meter: ScanMeter = {
  spend: () => undefined,
  roomForWalks: () => Number.MAX_SAFE_INTEGER,
  noteWalk: () => undefined,
};

/**
 * Counts all further work with this meter. It is set once for a program and not for each scan: callers of hundreds of
 * short walks would hand it on, and one that forgets it would have no limit.
 */
export function countScansWith(scanMeter: ScanMeter): void {
  meter = scanMeter;
}
