/**
 * Takeovers of a session after a lost owner that follow each other without progress: the session may be what its owners die
 * of. So the later ones wait, and after many the session ends (docs/decisions/0068). Progress is told by
 * `SessionRecords.progress`.
 */

/** So many takeovers without progress follow at once. */
export const freeTakeovers = 2;

/** The pause before the next one, from the last one on. It doubles with each, up to a limit. */
export const firstTakeoverPauseMs = 10_000;
export const longestTakeoverPauseMs = 60_000;

/** The next takeover after so many without progress, which take more than four minutes, ends the session. */
export const maxTakeovers = 8;

/** After so long without a takeover the count begins anew. */
export const takeoverWindowMs = 600_000;

/** How long after its last takeover a session may be taken over again, after so many without progress. */
export const takeoverPauseMs = (count: number): number =>
  count < freeTakeovers ? 0 : Math.min(firstTakeoverPauseMs * 2 ** (count - freeTakeovers), longestTakeoverPauseMs);
